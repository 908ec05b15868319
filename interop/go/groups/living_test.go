package groups

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// callTime is what a call of a member that lives takes at most while another one is lost. A call
// has no reason to wait for the lost one, whose times are the group's patience of 1 s and the 60 s
// of its connecting; the rest is for a busy machine.
const callTime = 10 * time.Second

// callPause is between two calls of a caller, so that calls don't take the whole machine.
const callPause = 20 * time.Millisecond

// A course is what calls have taken, of one way to call.
type course struct {
	mu   sync.Mutex // guards took
	took []time.Duration
}

func (c *course) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, d)
}

// sorted returns what the calls have taken, the shortest first.
func (c *course) sorted() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.took))
}

// p99 returns what 99 of 100 calls have taken at most; 0 without any.
func p99(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)*99/100]
}

func (c *course) String() string {
	took := c.sorted()
	if len(took) == 0 {
		return "no calls"
	}
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	return fmt.Sprintf("%d calls, median %v, p99 %v, slowest %v", len(took), round(took[len(took)/2]), round(p99(took)), round(took[len(took)-1]))
}

// courses are those of the calls of members that live.
type courses struct {
	group course // by hand, through the group
	own   course // by hand, at the members' own endpoints, in turn with those
	sdks  course // of SDKs' clients, through the group
}

// judge holds calls through the group against those at the members' own endpoints, under the same
// losses. Two times of one machine say something if there are many of each: not in CI.
func (c *courses) judge(t *testing.T) {
	t.Helper()
	if through, own := p99(c.group.sorted()), p99(c.own.sorted()); through > 2*own {
		t.Errorf("p99 of calls of members that live is %v through the group and %v at their own endpoints, want at most twice as much", through, own)
	}
}

// callAll calls a member over and over until stop: by hand as clients of both eras do, in turn
// through the group and at its own endpoint, and through the group by an SDK of each kind. None
// may fail, or wait for the member that is lost.
func (w *loss) callAll(m *mortal) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var calling sync.WaitGroup
	callers := []func() error{
		w.inTurn(&handCaller{us: w.us, url: w.bridge.at("both"), tool: m.name + "__mark"}, &handCaller{us: w.us, url: w.bridge.at(m.name), tool: "mark"}),
		w.inTurn(w.legacyOf(m), &handCaller{us: w.us, url: w.bridge.at(m.name), tool: "mark", legacy: true}),
	}
	for _, v := range w.visitors[:6] {
		callers = append(callers, func() error {
			return w.timed(&w.courses.sdks, v.name, func() error {
				_, err := v.ask("tools/call", map[string]any{"name": m.name + "__mark", "arguments": map[string]any{"nonce": "n"}}, false)
				return err
			})
		})
	}
	for _, call := range callers {
		calling.Go(func() { // ends with ctx
			for ctx.Err() == nil {
				if err := call(); err != nil {
					w.t.Errorf("a call of %s, which lives: %v", m.name, err)
					return
				}
				time.Sleep(callPause)
			}
		})
	}
	return func() { cancel(); calling.Wait() }
}

// inTurn calls through the group, and then at the member's own endpoint.
func (w *loss) inTurn(through, own *handCaller) func() error {
	return func() error {
		return errors.Join(
			w.timed(&w.courses.group, "through the group", through.call),
			w.timed(&w.courses.own, "at its own endpoint", own.call),
		)
	}
}

// legacyOf returns the caller of a legacy session with the group, which lasts for the whole test.
func (w *loss) legacyOf(m *mortal) *handCaller {
	through := *w.lasting
	through.tool = m.name + "__mark"
	return &through
}

// timed makes a call, and writes down what it took. If it takes too long, what mcpbridge does is
// logged while it does.
func (w *loss) timed(c *course, how string, call func() error) error {
	begun := time.Now()
	late := make(chan struct{})
	watch := time.AfterFunc(callTime, func() {
		defer close(late)
		w.t.Logf("a call %s has taken %v; mcpbridge's goroutines:\n%s", how, callTime, w.bridge.goroutines())
	})
	err := call()
	took := time.Since(begun)
	if !watch.Stop() {
		<-late
		err = errors.Join(err, fmt.Errorf("it took %v, want at most %v", took, callTime))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", how, err)
	}
	c.add(took)
	return nil
}

// A handCaller calls a tool by hand, as a client of one era. It is used by one goroutine.
type handCaller struct {
	us      *http.Client
	url     string
	tool    string
	legacy  bool
	session string // of a legacy one; opened with the first call if it is empty
}

func (h *handCaller) call() error {
	if h.legacy && h.session == "" {
		if err := h.open(); err != nil {
			return fmt.Errorf("opening a session: %w", err)
		}
	}
	meta := ""
	if !h.legacy {
		meta = `"_meta":` + modernMeta + `,`
	}
	text, _, err := h.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s"name":%q,"arguments":{"nonce":"n"}}}`, meta, h.tool))
	var answer struct{ Result json.RawMessage }
	if err == nil && (json.Unmarshal(text, &answer) != nil || answer.Result == nil) {
		err = fmt.Errorf("the answer is %s", text)
	}
	return err
}

// open opens a legacy session.
func (h *handCaller) open() error {
	text, session, err := h.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"by-hand","version":"1"}}}`)
	if err != nil || session == "" {
		return fmt.Errorf("the session is %q, and the answer %s: %w", session, text, err)
	}
	h.session = session
	_, _, err = h.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return err
}

// post sends a message, and returns the last one of the answer.
func (h *handCaller) post(body string) (text []byte, session string, err error) {
	req, err := http.NewRequest(http.MethodPost, h.url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	switch {
	case !h.legacy:
		req.Header["Mcp-Protocol-Version"], req.Header["Mcp-Method"], req.Header["Mcp-Name"] = []string{"2026-07-28"}, []string{"tools/call"}, []string{h.tool}
	case h.session != "":
		req.Header["Mcp-Protocol-Version"], req.Header["Mcp-Session-Id"] = []string{"2025-11-25"}, []string{h.session}
	}
	res, err := h.us.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	text, err = io.ReadAll(res.Body)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text = lastData(text)
	}
	return text, res.Header.Get("Mcp-Session-Id"), err
}

// lastData returns the data of the last event of a stream that has any.
func lastData(stream []byte) (last []byte) {
	lines := bufio.NewScanner(bytes.NewReader(stream))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok && len(data) > 0 {
			last = bytes.Clone(data)
		}
	}
	return last
}
