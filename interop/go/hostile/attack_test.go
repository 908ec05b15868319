package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// A client sends requests from an address of its own.
type client struct {
	http *http.Client
	addr string // of mcpbridge
	from string
}

func newClient(addr, from string) *client {
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return &client{&http.Client{Transport: &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 100}}, addr, from}
}

// request returns a request of 2026-07-28. params are beside its envelope.
func request(method, capabilities, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"},"io.modelcontextprotocol/clientCapabilities":%s},%s}}`, method, capabilities, params)
}

// send posts a message and returns the answer.
func (c *client) send(ctx context.Context, method, name, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.addr+"/mcp/s", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// An attack is repeated, each time on a goroutine of its own, until ctx ends.
type attack struct {
	name  string
	every time.Duration
	do    func(ctx context.Context, c *client, n int)
}

var megabyte = strings.Repeat("x", 1<<20)

// Errors of attackers are what they are meant to get.
var attacks = []attack{
	{"Content-Length", 20 * time.Millisecond, func(ctx context.Context, c *client, _ int) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.from)}}
		conn, err := d.DialContext(ctx, "tcp", c.addr)
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /mcp/s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 4194304\r\n\r\n{")
		<-ctx.Done()
	}},
	{"capabilities", 100 * time.Millisecond, func(ctx context.Context, c *client, n int) {
		large := fmt.Sprintf(`{"experimental":{"x%d":%q}}`, n, megabyte)
		if n%2 == 0 {
			large = fmt.Sprintf(`{"experimental":{"x%d":%q}}`, n, megabyte[:15<<10])
		}
		_, _, _ = c.send(ctx, "tools/call", "echo", request("tools/call", large, `"name":"echo"`))
	}},
	{"subscriptions", 100 * time.Millisecond, func(ctx context.Context, c *client, n int) {
		var uris []string
		for i := range 30 {
			uris = append(uris, fmt.Sprintf(`"note://%d/%d/%s"`, n, i, megabyte[:8000]))
		}
		_, _, _ = c.send(ctx, "subscriptions/listen", "", request("subscriptions/listen", "{}", `"notifications":{"resourceSubscriptions":[`+strings.Join(uris, ",")+`]}`))
	}},
	{"parked calls", 100 * time.Millisecond, func(ctx context.Context, c *client, _ int) {
		_, _, _ = c.send(ctx, "tools/call", "hang", request("tools/call", `{"elicitation":{}}`, `"name":"hang","arguments":{"text":"`+megabyte+`"}`))
	}},
}

// run repeats the attack until ctx ends.
func (a *attack) run(ctx context.Context, c *client) {
	tick := time.NewTicker(a.every)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			go a.do(ctx, c, n) // ends with ctx
		case <-ctx.Done():
			return
		}
	}
}
