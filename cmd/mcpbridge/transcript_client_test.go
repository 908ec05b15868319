package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A frame is a JSON-RPC message as the scripted peers see it.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		Name           string          `json:"name"`
		URI            string          `json:"uri"`
		RequestID      json.RawMessage `json:"requestId"`
		Revision       string          `json:"protocolVersion"`
		RequestState   string          `json:"requestState"`
		InputResponses json.RawMessage `json:"inputResponses"`
		Notifications  json.RawMessage `json:"notifications"`
	} `json:"params"`
	Result struct {
		RequestState  string                     `json:"requestState"`
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
	} `json:"result"`
}

// parseFrame returns nothing for what is no message.
func parseFrame(text []byte) frame {
	var f frame
	_ = json.Unmarshal(text, &f) // error pages are no messages
	return f
}

// title names a message in the header of its section.
func title(body []byte) string {
	f := parseFrame(body)
	switch {
	case f.Method == "":
		return "response"
	case f.Params.Name != "":
		return f.Method + " " + f.Params.Name
	}
	return f.Method
}

// patient is how long a client waits for what has to come, more than any time-out.
const patient = 2 * time.Hour

// A scriptedClient is a client of either era, at the wire.
type scriptedClient struct {
	r      *transcriptRig
	http   http.RoundTripper
	modern bool
	over   string

	session  string         // what Mcp-Session-Id says; legacy alone
	messages string         // where to POST, over HTTP+SSE
	endpoint chan string    // tells messages
	conn     transport.Conn // over stdio
	asked    chan frame     // requests of the server
	ctx      context.Context
	hangUp   context.CancelFunc // on everything that is open
	running  sync.WaitGroup

	stream context.CancelFunc // hangs up on the session's stream

	mu      sync.Mutex // guards the fields below
	last    int        // the id of the last request
	event   string     // the id of the last event of a stream that can be resumed
	waiting map[string]chan frame
}

func newScriptedClient(r *transcriptRig, rt http.RoundTripper) *scriptedClient {
	c := &scriptedClient{r: r, http: rt, asked: make(chan frame, 16), endpoint: make(chan string, 1), waiting: make(map[string]chan frame)}
	c.ctx, c.hangUp = context.WithCancel(context.Background())
	return c
}

// close hangs up on all that is open.
func (c *scriptedClient) close() {
	c.hangUp()
	if c.conn != nil {
		_ = c.conn.Close()
	}
	c.running.Wait()
}

// dial has the client use a connection.
func (c *scriptedClient) dial(conn transport.Conn) {
	c.conn = conn
	c.running.Go(func() {
		for {
			text, err := conn.Read()
			if err != nil {
				return
			}
			c.receive(text)
		}
	})
}

// receive takes a message of the server.
func (c *scriptedClient) receive(text []byte) {
	switch f := parseFrame(text); {
	case f.Method != "" && f.ID != nil:
		c.asked <- f
	case f.Method == "" && f.ID != nil:
		c.mu.Lock()
		answer := c.waiting[string(f.ID)]
		c.mu.Unlock()
		if answer != nil {
			answer <- f
		}
	}
}

// A ticket is a request that was sent.
type ticket struct {
	c      *scriptedClient
	id     string
	answer chan frame
	over   chan struct{} // closed when the HTTP response has ended; never on a connection
	hangUp context.CancelFunc
}

// request sends a request. meta and params are members of its _meta and its params, beside
// those that its era demands.
func (c *scriptedClient) request(method, meta, params string) *ticket {
	c.mu.Lock()
	c.last++
	k := &ticket{c: c, id: strconv.Itoa(c.last), answer: make(chan frame, 1)}
	c.waiting[k.id] = k.answer
	c.mu.Unlock()
	k.over, k.hangUp = c.send(method, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, k.id, method, c.params(meta, params)))
	return k
}

// do sends a request and waits for its end.
func (c *scriptedClient) do(method, params string) frame {
	f := c.request(method, "", params).wait()
	c.r.pass(100 * time.Millisecond)
	return f
}

// notify sends a notification.
func (c *scriptedClient) notify(method, params string) {
	c.send(method, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{%s}}`, method, c.params("", params)))
	c.r.pass(100 * time.Millisecond)
}

// reply answers a request of the server.
func (c *scriptedClient) reply(to frame, result string) {
	c.send("", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, to.ID, result))
}

// question returns the next request of the server.
func (c *scriptedClient) question() frame {
	select {
	case f := <-c.asked:
		return f
	case <-time.After(patient):
		c.r.t.Error("the client was not asked")
		return frame{}
	}
}

// wait returns the answer, or nothing if the response ended without one that has the
// request's id.
func (k *ticket) wait() frame {
	select {
	case f := <-k.answer:
		return f
	case <-k.over:
		select {
		case f := <-k.answer:
			return f
		default:
			return frame{}
		}
	case <-time.After(patient):
		k.c.r.t.Error("the client got no answer")
		return frame{}
	}
}

// cancel takes the request back, as the era and the transport have it.
func (k *ticket) cancel() {
	if k.c.modern && k.c.over == viaHTTP {
		k.hangUp()
		return
	}
	k.c.notify("notifications/cancelled", `"requestId":`+k.id)
}

const clientCapabilities = `{"elicitation":{"form":{}},"roots":{"listChanged":true},"sampling":{}}`

// params returns the members of a request's params: _meta, with the envelope that a modern
// client puts before meta, and then rest.
func (c *scriptedClient) params(meta, rest string) string {
	members := []string{meta}
	if c.modern {
		members = []string{`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`,
			`"io.modelcontextprotocol/clientInfo":{"name":"scripted-client","version":"1"}`,
			`"io.modelcontextprotocol/clientCapabilities":` + clientCapabilities, meta}
	}
	members = slices.DeleteFunc(members, func(m string) bool { return m == "" })
	if len(members) > 0 {
		meta = `"_meta":{` + strings.Join(members, ",") + `}`
	}
	if meta != "" && rest != "" {
		meta += ","
	}
	return meta + rest
}

// send sends a message. over is closed when the response to it has ended.
func (c *scriptedClient) send(method, text string) (over chan struct{}, hangUp context.CancelFunc) {
	if c.conn != nil {
		if err := c.conn.Write([]byte(text)); err != nil {
			c.r.t.Errorf("Write = %v", err)
		}
		return nil, func() {}
	}
	url := "http://gateway.example/mcp/peer"
	if c.over == viaSSE {
		url = "http://gateway.example" + c.messages
	}
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if c.modern {
		h.Set("Mcp-Protocol-Version", "2026-07-28")
		h.Set("Mcp-Method", method)
		if name := parseFrame([]byte(text)).Params.Name; name != "" {
			h.Set("Mcp-Name", name)
		}
	}
	over, hangUp = c.exchange(http.MethodPost, url, text, h)
	if c.over == viaSSE {
		over = nil // the answer comes on the stream
	}
	return over, hangUp
}

// exchange sends an HTTP request and reads its response in the background.
func (c *scriptedClient) exchange(method, url, body string, h http.Header) (over chan struct{}, hangUp context.CancelFunc) {
	ctx, hangUp := context.WithCancel(c.ctx)
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		c.r.t.Fatal(err)
	}
	req.Host = "127.0.0.1"
	req.Header = h
	if c.session != "" {
		h.Set("Mcp-Session-Id", c.session)
		h.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	over = make(chan struct{})
	c.running.Go(func() {
		defer close(over)
		resp, err := c.http.RoundTrip(req)
		if err != nil {
			return // the client hung up, or was cut off; the transcript tells
		}
		defer func() { _ = resp.Body.Close() }()
		c.read(resp)
	})
	return over, hangUp
}

// read takes the messages of a response.
func (c *scriptedClient) read(resp *http.Response) {
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(resp.Body) // what there is is recorded
		c.receive(text)
		return
	}
	event := ""
	for in := bufio.NewReader(resp.Body); ; {
		line, err := in.ReadBytes('\n')
		line = bytes.TrimSpace(line)
		switch data, isData := bytes.CutPrefix(line, []byte("data: ")); {
		case err != nil:
			return
		case bytes.HasPrefix(line, []byte("event: ")):
			event = string(line[len("event: "):])
		case bytes.HasPrefix(line, []byte("id: ")) && resp.Request.Method == http.MethodGet:
			c.mu.Lock()
			c.event = string(line[len("id: "):])
			c.mu.Unlock()
		case isData && event == "endpoint":
			c.endpoint <- string(data)
		case isData:
			c.receive(data)
		case len(line) == 0:
			event = ""
		}
	}
}

// open opens a session of the legacy era, with its stream.
func (c *scriptedClient) open() {
	if c.over == viaSSE {
		c.exchange(http.MethodGet, "http://gateway.example/sse/peer", "", http.Header{"Accept": {"text/event-stream"}})
		c.messages = <-c.endpoint
		c.r.pass(100 * time.Millisecond)
	}
	c.do("initialize", `"protocolVersion":"2025-11-25","capabilities":`+clientCapabilities+`,"clientInfo":{"name":"scripted-client","version":"1"}`)
	c.notify("notifications/initialized", "")
	if c.over == viaHTTP {
		c.openStream()
	}
}

// openStream opens the stream of a session, or resumes it.
func (c *scriptedClient) openStream() {
	h := http.Header{"Accept": {"text/event-stream"}}
	c.mu.Lock()
	if c.event != "" {
		h.Set("Last-Event-Id", c.event)
	}
	c.mu.Unlock()
	_, c.stream = c.exchange(http.MethodGet, "http://gateway.example/mcp/peer", "", h)
	c.r.pass(100 * time.Millisecond)
}

// leave ends the session.
func (c *scriptedClient) leave() {
	if c.over != viaHTTP {
		c.hangUp()
		return
	}
	over, _ := c.exchange(http.MethodDelete, "http://gateway.example/mcp/peer", "", http.Header{})
	<-over
	c.r.pass(100 * time.Millisecond)
}
