//go:build linux

package endings

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

const (
	// drainDelay is how long requests are served after the signal.
	drainDelay = 1500 * time.Millisecond
	// before is how long load runs before the signal.
	before = 500 * time.Millisecond
)

// A moment is the first time at which something was seen.
type moment struct{ at atomic.Pointer[time.Time] }

func (m *moment) seen() {
	now := time.Now()
	m.at.CompareAndSwap(nil, &now)
}

// A rollingLoad sends requests until one is refused.
type rollingLoad struct {
	t      *testing.T
	url    string
	served atomic.Int64
	asked  atomic.Int64 // to close their connections
	failed moment
	why    atomic.Value // the first error or status
}

// run sends one request after the other.
func (l *rollingLoad) run(c *http.Client) {
	for {
		res, err := c.Do(l.request())
		if err != nil || res.StatusCode != http.StatusOK {
			l.failed.seen()
			l.why.CompareAndSwap(nil, fmt.Sprint(err, res))
			return
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || !strings.Contains(string(body), "saved") {
			l.failed.seen()
			l.why.CompareAndSwap(nil, fmt.Sprintf("%v %s", err, body))
			return
		}
		l.served.Add(1)
		if res.Close && !c.Transport.(*http.Transport).DisableKeepAlives {
			l.asked.Add(1)
		}
	}
}

func (l *rollingLoad) request() *http.Request {
	const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"edit_note","arguments":{"name":"todo","text":"x"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequest(http.MethodPost, l.url, strings.NewReader(text))
	if err != nil {
		l.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "edit_note",
	} {
		req.Header.Set(name, value)
	}
	return req
}

// poll asks /readyz until it is 503.
func poll(url string, unready *moment) {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		res, err := c.Get(url)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(res.Body) // nothing of it is needed if it breaks off
		_ = res.Body.Close()
		if res.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(body), "draining") {
			unready.seen()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestRollingStop has a process under load end: a poll of /readyz sees it before any
// request is refused, on connections that stay and on new ones.
func TestRollingStop(t *testing.T) {
	listen, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start("mcpbridge", []string{"MCPBRIDGE_DRAIN_DELAY=" + drainDelay.String(), "MCPBRIDGE_LOG__LEVEL=warn"}, binaries.Bridge, "serve", "--listen", listen, "--admin", admin)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	if err := p.Ready(ctx, "http://"+admin+"/readyz", http.StatusOK); err != nil {
		t.Fatal(err)
	}

	l := &rollingLoad{t: t, url: "http://" + listen + "/mcp/notebook"}
	var unready moment
	var all sync.WaitGroup
	all.Go(func() { poll("http://"+admin+"/readyz", &unready) })
	for _, once := range []bool{false, false, false, true, true} {
		all.Go(func() { l.run(&http.Client{Transport: &http.Transport{DisableKeepAlives: once}}) })
	}
	time.Sleep(before)
	began, servedBefore := time.Now(), l.served.Load()
	if err := p.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	all.Wait()

	saw, refused := unready.at.Load(), l.failed.at.Load()
	if saw == nil || refused == nil {
		t.Fatalf("/readyz was 503: %v; a request was refused: %v", saw, refused)
	}
	t.Logf("/readyz was 503 after %v, the first request was refused after %v; %d requests served before, %d after, %d connections asked to close",
		saw.Sub(began).Round(time.Millisecond), refused.Sub(began).Round(time.Millisecond), servedBefore, l.served.Load()-servedBefore, l.asked.Load())
	if !saw.Before(*refused) || refused.Sub(began) < drainDelay {
		t.Errorf("/readyz was 503 after %v, and a request was refused after %v: %v", saw.Sub(began), refused.Sub(began), l.why.Load())
	}
	if servedBefore == 0 || l.served.Load() == servedBefore || l.asked.Load() == 0 {
		t.Errorf("%d requests were served before, %d after, and %d connections were asked to close", servedBefore, l.served.Load()-servedBefore, l.asked.Load())
	}
}
