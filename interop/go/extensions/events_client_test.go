package extensions

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

const eventsMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/events":{}}},"io.modelcontextprotocol/clientInfo":{"name":"interop","version":"1"}}`

// An eventsClient is a modern client that writes the wire itself. Ids are JSON, as
// they are sent.
type eventsClient interface {
	// send sends a request; params have a comma before them.
	send(id, method, params string) *eventsAnswer
}

// An eventsAnswer is what comes of one request: messages, the response last.
type eventsAnswer struct {
	msgs   chan string // closed after the response, or when there will be none
	cancel func()
}

// read returns the next message, empty at the end.
func (a *eventsAnswer) read() (string, error) {
	t := time.NewTimer(2 * time.Minute)
	defer t.Stop()
	select {
	case msg := <-a.msgs:
		return msg, nil
	case <-t.C:
		return "", errors.New("nothing came for 2m")
	}
}

// discard takes messages until there are no more, or done is closed.
func (a *eventsAnswer) discard(done <-chan struct{}) {
	for more := true; more; {
		select {
		case _, more = <-a.msgs:
		case <-done:
			return
		}
	}
}

func (a *eventsAnswer) next(t *testing.T) string {
	t.Helper()
	msg, err := a.read()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func eventsRequest(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s%s}}`, id, method, eventsMeta, params)
}

// An eventsHTTP is a client over HTTP: a stream is cancelled by closing it.
type eventsHTTP struct {
	t    *testing.T
	url  string
	http *http.Client
}

func newEventsHTTP(t *testing.T, url string) *eventsHTTP {
	c := &eventsHTTP{t: t, url: url, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

func (c *eventsHTTP) send(id, method, params string) *eventsAnswer {
	ctx, cancel := context.WithCancel(c.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(eventsRequest(id, method, params)))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}}
	if method == "tools/call" {
		req.Header.Set("Mcp-Name", "streams")
	}
	a := &eventsAnswer{msgs: make(chan string, 100), cancel: cancel}
	go c.read(ctx, req, a) // ends with the answer, or cancel
	return a
}

func (c *eventsHTTP) read(ctx context.Context, req *http.Request, a *eventsAnswer) {
	defer close(a.msgs)
	res, err := c.http.Do(req)
	if err != nil {
		return // it was cancelled, or the test sees that nothing comes
	}
	defer res.Body.Close()
	put := func(msg string) {
		select {
		case a.msgs <- msg:
		case <-ctx.Done():
		}
	}
	if res.Header.Get("Content-Type") == "application/json" {
		text, _ := io.ReadAll(res.Body) // half a message fails the test
		put(string(text))
		return
	}
	for r := bufio.NewScanner(res.Body); r.Scan(); {
		if data, ok := strings.CutPrefix(r.Text(), "data: "); ok {
			put(data)
		}
	}
}

// An eventsPipe is a client that has started mcpbridge: a stream is cancelled by a
// notification, and whose a message is, is told by its id.
type eventsPipe struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	log process.Tail

	mu   sync.Mutex // guards the fields below, and serializes writes to in
	open map[string]*eventsAnswer
}

func startEventsPipe(t *testing.T, cmd *exec.Cmd) *eventsPipe {
	t.Helper()
	c := &eventsPipe{t: t, cmd: cmd, open: make(map[string]*eventsAnswer)}
	cmd.Stderr = &c.log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.in = in
	read := make(chan struct{})
	go c.read(out, read) // ends with the process
	t.Cleanup(func() { c.close(read) })
	return c
}

// close ends the input, after which mcpbridge and what it has started must end.
func (c *eventsPipe) close(read <-chan struct{}) {
	_ = c.in.Close() // it may have ended
	late := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) })
	<-read
	err := c.cmd.Wait()
	if !late.Stop() || err != nil {
		c.t.Errorf("mcpbridge ended with %v, want it to end by itself within a minute; it says:\n%s", err, c.log.String())
	}
}

func (c *eventsPipe) read(out io.Reader, done chan<- struct{}) {
	defer close(done)
	r := bufio.NewScanner(out)
	r.Buffer(nil, 4<<20)
	for r.Scan() {
		c.take(r.Text())
	}
}

// take hands a message to the request that it is about.
func (c *eventsPipe) take(text string) {
	var m struct {
		ID     json.RawMessage
		Params struct {
			Meta struct {
				ID json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		c.t.Errorf("mcpbridge wrote %q: %v", text, err)
		return
	}
	id := string(m.ID) + string(m.Params.Meta.ID) // only one is there
	c.mu.Lock()
	a := c.open[id]
	if m.ID != nil {
		delete(c.open, id)
	}
	c.mu.Unlock()
	if a == nil {
		return // it was cancelled
	}
	a.msgs <- text
	if m.ID != nil {
		close(a.msgs)
	}
}

func (c *eventsPipe) send(id, method, params string) *eventsAnswer {
	a := &eventsAnswer{msgs: make(chan string, 30_000)} // none waits for another
	a.cancel = func() {
		c.mu.Lock()
		delete(c.open, id)
		c.mu.Unlock()
		c.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id))
	}
	c.mu.Lock()
	c.open[id] = a
	c.mu.Unlock()
	c.write(eventsRequest(id, method, params))
	return a
}

func (c *eventsPipe) write(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintln(c.in, text); err != nil {
		c.t.Errorf("writing to mcpbridge: %v", err)
	}
}
