package extensions

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestEvents runs the draft of the events extension (SEP-3415) through mcpbridge, over
// every way from a client to a server.
func TestEvents(t *testing.T) {
	b := rig.Build(t, "events")
	for _, p := range eventsPaths {
		t.Run(p.client+" to "+p.server, func(t *testing.T) {
			w := newEventsWorld(t, b, p.client, p.server)
			t.Run("T-29 every event once and in order", func(t *testing.T) { testEveryEvent(t, w) })
			t.Run("T-29 requests that are no streams", func(t *testing.T) { testEventsAnswers(t, w) })
			t.Run("T-30 cancellation", func(t *testing.T) { testEventsCancelled(t, w) })
			if w.bridge != nil {
				t.Run("T-30 drain", func(t *testing.T) { testEventsDrain(t, w) })
			}
		})
		rig.Until(t, time.Minute, "no process is left of "+p.client+" to "+p.server, func() string {
			left, err := process.WithMark(b.Server)
			if err == nil && len(left) == 0 {
				return ""
			}
			return fmt.Sprintf("left behind: %q, %v", left, err)
		})
	}
}

const (
	eventsCount = 10_000
	eventsBeats = 12 // one in 300 ms, beyond eventsTimeout
)

// testEveryEvent has several streams open at once, under ids that are easily mistaken
// for each other. Every message is what the server wrote, but for the id.
func testEveryEvent(t *testing.T, w *eventsWorld) {
	streams := make(map[string]*eventsAnswer)
	params := fmt.Sprintf(`,"name":"ticks","arguments":{"count":%d,"error":%d,"heartbeats":%d,"everyMs":300,"terminate":true},"cursor":null`, eventsCount, eventsCount/2, eventsBeats)
	for _, id := range []string{"1", `"1"`, "2", `"a/b"`} {
		streams[id] = w.client.send(id, "events/stream", params)
	}
	faults := make(chan error, len(streams))
	for id, a := range streams {
		go func() { faults <- checkEvents(a, id) }() // ends with its stream
	}
	for range streams {
		if err := <-faults; err != nil {
			t.Error(err)
		}
	}
}

// checkEvents reads a stream to its end, and returns its first fault.
func checkEvents(a *eventsAnswer, id string) error {
	for n, want := range wantedEvents(id) {
		got, err := a.read()
		if err == nil && got != want {
			err = fmt.Errorf("message %d is %s\nwant %s", n, got, want)
		}
		if err != nil {
			return fmt.Errorf("stream %s: %w", id, err)
		}
	}
	text, err := a.read()
	if err != nil {
		return fmt.Errorf("stream %s: %w", id, err)
	}
	return checkEventsResult(text, id)
}

// wantedEvents is all that comes before the result.
func wantedEvents(id string) []string {
	var all []string
	tell := func(what, params string) {
		all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/events/%s","params":{%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, what, params, id))
	}
	tell("active", `"cursor":"0","truncated":false`)
	for n := range eventsCount {
		tell("event", fmt.Sprintf(`"eventId":"%d","name":"ticks","timestamp":"2026-11-01T00:00:00Z","data":{"n":%[1]d,"big":9007199254740993},"cursor":"%d"`, n, n+1))
		if n+1 == eventsCount/2 {
			tell("error", `"error":{"code":-32603,"message":"a look upstream failed"}`)
		}
	}
	for range eventsBeats {
		tell("heartbeat", fmt.Sprintf(`"cursor":"%d"`, eventsCount))
	}
	tell("terminated", `"error":{"code":-32024,"message":"access was revoked"}`)
	return all
}

func checkEventsResult(text, id string) error {
	var m struct {
		ID     json.RawMessage
		Result *struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
	}
	err := json.Unmarshal([]byte(text), &m)
	if err != nil || m.Result == nil || string(m.ID) != id || string(m.Result.Meta["io.modelcontextprotocol/subscriptionId"]) != id {
		return fmt.Errorf("stream %s: result is %s, want one under its id", id, text)
	}
	return nil
}

// testEventsAnswers has what is answered at once, refusals with the server's own code.
func testEventsAnswers(t *testing.T, w *eventsWorld) {
	for _, c := range []struct{ method, params, want string }{
		{"events/list", ``, `"delivery":["poll","push"]`},
		{"events/poll", `,"name":"ticks","cursor":null`, `"nextPollMs":1000`},
		{"events/stream", `,"name":"unknown"`, `"error":{"code":`},
	} {
		a := w.client.send(`"x"`, c.method, c.params)
		if got := a.next(t); !strings.Contains(got, c.want) || !strings.Contains(got, `"id":"x"`) {
			t.Errorf("%s = %s, want %s in it", c.method, got, c.want)
		}
	}
}

// testEventsCancelled cancels streams that rest and streams that the server writes as fast
// as it can: it hears of all at once, and nothing is left of them.
func testEventsCancelled(t *testing.T, w *eventsWorld) {
	var before map[string]float64
	if w.bridge != nil {
		before = w.rest()
	}
	asked := eventsCounts(t, w)
	var open []*eventsAnswer
	var reading sync.WaitGroup
	defer reading.Wait()
	done := make(chan struct{})
	defer close(done)
	for n := range 8 {
		count := n % 2 << 30
		a := w.client.send(fmt.Sprint(n+10), "events/stream", fmt.Sprintf(`,"name":"ticks","arguments":{"count":%d,"heartbeats":-1,"everyMs":100}`, count))
		if first := a.next(t); !strings.Contains(first, "notifications/events/active") {
			t.Fatalf("the stream began with %s", first)
		}
		open = append(open, a)
		reading.Go(func() { a.discard(done) }) // a client that does not read delays others on its server's connection
	}
	began := time.Now()
	for _, a := range open {
		a.cancel()
	}
	rig.Until(t, time.Minute, "the server has heard", func() string {
		if now := eventsCounts(t, w); now.Open != 0 || now.Cancelled != asked.Cancelled+8 {
			return fmt.Sprintf("%d streams are open, %d were cancelled", now.Open, now.Cancelled-asked.Cancelled)
		}
		return ""
	})
	t.Logf("the server had heard after %v", time.Since(began))
	if w.bridge != nil {
		w.wantRest(before)
	}
}

type eventsTally struct{ Open, Cancelled int }

// eventsCounts asks the server for its streams.
func eventsCounts(t *testing.T, w *eventsWorld) eventsTally {
	t.Helper()
	var m struct {
		Result struct{ StructuredContent eventsTally }
	}
	text := w.client.send(`"count"`, "tools/call", `,"name":"streams","arguments":{}`).next(t)
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("answer = %s: %v", text, err)
	}
	return m.Result.StructuredContent
}

// testEventsDrain ends mcpbridge while a stream is open, which it does not wait for.
func testEventsDrain(t *testing.T, w *eventsWorld) {
	a := w.client.send("30", "events/stream", `,"name":"ticks","arguments":{"heartbeats":-1,"everyMs":100}`)
	a.next(t)
	began := time.Now()
	if err := syscall.Kill(w.bridge.Pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	last := ""
	for msg := a.next(t); msg != ""; msg = a.next(t) {
		last = msg
	}
	if took := time.Since(began); !strings.Contains(last, `"id":30,"error":`) || took > 3*time.Second {
		t.Errorf("the stream ended after %v with %s, want an error at once", took, last)
	}
}
