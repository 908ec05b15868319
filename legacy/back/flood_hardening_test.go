package back

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// loopTime is how long a server that wants to be asked without end is watched.
const loopTime = 700 * time.Millisecond

// maxLooped is how many requests it may get by then; a loop makes thousands.
const maxLooped = 10

// emptyStreams is how many may end without a message before the pauses between them grow.
const emptyStreams = 3

// barrenStream ends at once, brings nothing, and asks to come back at once.
func barrenStream(w http.ResponseWriter, id int32) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "id: %d\nretry: 0\ndata:\n\n", id)
}

// A server that ends its stream at once and says "retry: 0" must not be asked in a
// loop: it takes a core of ours, and its own.
func TestRetryZeroOfTheServersStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		p.Quiet = true
		var gets atomic.Int32
		p.Get = func(w http.ResponseWriter, _ *http.Request) { barrenStream(w, gets.Add(1)) }
		p.On["tools/list"] = listOnce
		b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, RoundTripper: p.RoundTripper}})
		if err := serveOne(t, b, "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(loopTime)
		if n := gets.Load(); n < emptyStreams || n > maxLooped {
			t.Errorf("%d GETs within %v, want %d to %d", n, loopTime, emptyStreams, maxLooped)
		}
	})
}

// The same of the stream that answers a call. The answer comes at last.
func TestRetryZeroOfACallsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		p.Quiet = true
		var id atomic.Value
		p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			id.Store(m.ID)
			barrenStream(w, 0)
		}
		var gets atomic.Int32
		begun := time.Now()
		p.Get = func(w http.ResponseWriter, r *http.Request) {
			switch n := gets.Add(1); {
			case r.Header.Get("Last-Event-Id") == "":
				w.WriteHeader(http.StatusMethodNotAllowed)
			case time.Since(begun) < loopTime:
				barrenStream(w, n)
			default:
				legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":%s,"result":{"ok":1}}`, id.Load())
			}
		}
		b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, RoundTripper: p.RoundTripper}})
		got, err := body(b.Serve(t.Context(), ask("tools/call", `{}`), &backtest.Caller{}))
		if err != nil || got != `{"ok":1}` {
			t.Errorf("Serve = %s, %v, want the answer", got, err)
		}
		if n := gets.Load(); n < emptyStreams || n > maxLooped {
			t.Errorf("%d GETs for one call, want %d to %d", n, emptyStreams, maxLooped)
		}
	})
}

// Five listens of 66 KiB, each closed at once, must not cause 10,240 requests
// upstream.
func TestFiveListensCauseABoundedNumberOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		p.Quiet = true
		var calls atomic.Int32
		p.On["resources/subscribe"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			calls.Add(1)
			legacytest.AnswerJSON(w, m.ID, `{}`)
		}
		p.On["resources/unsubscribe"] = p.On["resources/subscribe"]
		aud := watchtest.NewAudience(&watchtest.Journal{})
		b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, RoundTripper: p.RoundTripper, Settings: settings.Server{Linger: time.Millisecond}, Changes: aud}})
		begun := time.Now()
		for i := range 5 {
			var want []fanout.Topic
			for j := range 1024 {
				want = append(want, uriTopic(fmt.Sprintf("file:///srv/notes/%040d/%d", i, j)))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			aud.Want(1, want...)
			_, release, err := b.Watch(ctx, mcp.Profile{Scope: testScope}, want)
			if err == nil {
				release()
			}
			aud.Want(-1, want...)
			cancel()
		}
		time.Sleep(time.Second)
		rate, saved := 200.0, 2000.0
		most := int32(2*(saved+rate*time.Since(begun).Seconds())) + 2
		if n := calls.Load(); n < 1024 || n > most {
			t.Errorf("%d requests within %v, want 1024 to %d", n, time.Since(begun), most)
		}
	})
}

// A server that floods its stream with what nobody needs must not have it read as
// fast as it comes: that takes a core.
func TestFloodOfTheServersStreamIsRationed(t *testing.T) {
	for name, text := range map[string]string{
		"comments":      ": nothing\n",
		"empty events":  "id: 1\n\n",
		"notifications": "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n",
		"progress":      "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":9,\"progress\":1}}\n\n",
	} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			p := legacytest.NewMemoryServer(t)
			var sent atomic.Int64
			p.Get = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				flood(t, w, r, text, &sent)
			}
			p.On["tools/list"] = listOnce
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, RoundTripper: p.RoundTripper}})
			if err := serveOne(t, b, "a"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			begun, before := time.Now(), sent.Load()
			if err := serveOne(t, b, "a"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			// 1 MiB/s, what a call is good for, and what buffers take at once.
			if n, most := sent.Load()-before, int64(float64(8<<20)*time.Since(begun).Seconds()); n > most {
				t.Errorf("%d bytes of the flood were read within %v, want %d at most", n, time.Since(begun), most)
			}
		})
	}
}

// The same of the stream that answers a call, which is read faster: somebody waits.
func TestFloodOfACallsStreamIsRationed(t *testing.T) {
	for name, text := range map[string]string{
		"comments":                     ": nothing\n",
		"log messages":                 "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"debug\",\"data\":1}}\n\n",
		"progress of nobody":           "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":9999,\"progress\":1}}\n\n",
		"progress that does not go on": "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":TOKEN,\"progress\":1}}\n\n",
	} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			p := legacytest.NewMemoryServer(t)
			var sent atomic.Int64
			p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
				w.Header().Set("Content-Type", "text/event-stream")
				flood(t, w, r, strings.ReplaceAll(text, "TOKEN", m.ID.String()), &sent)
			}
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, RoundTripper: p.RoundTripper}})
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := body(b.Serve(ctx, callWith("7", ""), &backtest.Caller{}))
				done <- err
			}()
			wantSlow(t, &sent, 64<<20, 200*time.Millisecond)
			if leave(); <-done == nil {
				t.Error("the call has an answer, which was never sent")
			}
		})
	}
}

// The same of the one stream of HTTP+SSE.
func TestFloodOfAnEventStreamIsRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryEventServer(t)
		p.On["tools/list"] = func(_ *legacytest.EventStream, m wire.Message) string {
			return string(wire.AppendResult(nil, m.ID, []byte(`{"tools":[]}`), nil))
		}
		b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/sse", RoundTripper: p.RoundTripper}, Transport: TransportSSE})
		if err := serveOne(t, b, "a"); err != nil {
			t.Fatal(err)
		}
		var sent atomic.Int64
		stop := make(chan struct{})
		var flooding sync.WaitGroup
		defer flooding.Wait()
		defer p.CloseClientConnections()
		defer close(stop)
		flooding.Go(func() {
			for s, text := p.LastStream(), strings.Repeat("x", 64<<10); ; sent.Add(64 << 10) {
				select {
				case <-stop:
					return
				default:
					if sent.Load() > maxFlood {
						t.Errorf("more than %d bytes of the flood were read", maxFlood)
						return
					}
					s.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + text + `"}}`)
				}
			}
		})
		wantSlow(t, &sent, 1<<20, time.Second)
	})
}

// maxFlood is more than what is read of a flood in any test. Without it, time would stand
// still in a test whose flood is read without a pause.
const maxFlood = 256 << 20

// flood writes text again and again until the client has left.
func flood(t *testing.T, w http.ResponseWriter, r *http.Request, text string, sent *atomic.Int64) {
	piece := []byte(strings.Repeat(text, 32<<10/len(text)))
	for r.Context().Err() == nil {
		if sent.Load() > maxFlood {
			t.Errorf("more than %d bytes of the flood were read", maxFlood)
			return
		}
		n, err := w.Write(piece)
		if sent.Add(int64(n)); err != nil {
			return
		}
	}
}

// wantSlow fails unless a flood is read at about most bytes a second, once what may come
// at once has come.
func wantSlow(t *testing.T, sent *atomic.Int64, most float64, during time.Duration) {
	t.Helper()
	time.Sleep(100 * time.Millisecond)
	begun, before := time.Now(), sent.Load()
	time.Sleep(during)
	// Buffers take some at once.
	if n, most := sent.Load()-before, int64(most*time.Since(begun).Seconds())+4<<20; n > most || before == 0 {
		t.Errorf("%d bytes of the flood were read within %v, want %d at most", n, time.Since(begun), most)
	}
}

// The same of a connection. A call that begins meanwhile has its answer soon, since the
// flood is read faster as long as it waits.
func TestFloodOfAConnectionIsRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		first := make(chan error, 1)
		go func() { first <- serveOne(t, b, "a") }()
		p := <-peers
		p.Handshake(legacytest.Everything)
		p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		const flood = 100_000
		begun := time.Now()
		for range flood {
			p.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
		}
		if took, least := time.Since(begun), 20*time.Second; took < least {
			t.Errorf("%d useless messages were read within %v, want no less than %v", flood, took, least)
		}
		begun = time.Now()
		go func() { first <- serveOne(t, b, "a") }()
		call := p.Want("tools/list")
		for range flood / 10 { // before the answer
			p.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
		}
		p.Result(call.ID, `{"tools":[]}`)
		if err := <-first; err != nil || time.Since(begun) > time.Second {
			t.Errorf("the call within the flood = %v after %v", err, time.Since(begun))
		}
	})
}

// What can't be read is logged now and then, with how often there was something, and not
// as often as a server sends it.
func TestFloodOfTheUnreadableIsLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer // written by the reader, read once it is done
		b, peers := pipeBack(t, Options{Options: upstream.Options{Logger: slog.New(slog.NewTextHandler(&logs, nil))}})
		first := make(chan error, 1)
		go func() { first <- serveOne(t, b, "a") }()
		p := <-peers
		p.Handshake(legacytest.Everything)
		for range 1000 {
			p.Write(`{"neither":"a request","nor":"an answer"}`)
		}
		time.Sleep(20 * time.Second)
		p.Write(`{"neither":"a request","nor":"an answer"}`)
		p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := strings.Count(logs.String(), "skipping unreadable message"); n != 2 || !strings.Contains(logs.String(), "times=1000") {
			t.Errorf("logged %d times: %.1000s\nwant 2, the second with how often", n, logs.String())
		}
	})
}

// Log messages that a client has not asked for delay its result little.
func TestM2L12LogMessagesOfOtherLevelsDelayNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		s := serve(t.Context(), b, callWith("1", "error"))
		p := <-peers
		p.Handshake(`{"tools":{}}`)
		call := p.Want("tools/call")
		begun := time.Now()
		text := strings.Repeat("x", 4<<10)
		for range 8 << 10 { // 32 MiB
			p.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":"%s"}}`, text)
		}
		p.Result(call.ID, `{}`)
		if <-s.done; s.err != nil || time.Since(begun) > 1200*time.Millisecond {
			t.Errorf("Serve = %v after %v, want a result within 1.2 s", s.err, time.Since(begun))
		}
	})
}

// A caller that is too slow for a server's log messages hears how many it has missed, and
// so does who reads the log.
func TestM2L12SlowCallersHearWhatTheyMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer // written by the call, read once it is done
		b, peers := pipeBack(t, Options{Options: upstream.Options{Logger: slog.New(slog.NewTextHandler(&logs, nil))}})
		slow := &backtest.Caller{Hold: make(chan struct{})}
		done := make(chan error, 1)
		go func() {
			_, err := body(b.Serve(t.Context(), callWith("1", "info"), slow))
			done <- err
		}()
		p := <-peers
		p.Handshake(`{"tools":{}}`)
		call := p.Want("tools/call")
		const messages = 6000
		for range messages {
			p.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}`, strings.Repeat("x", 1<<10))
		}
		p.Result(call.ID, `{}`)
		synctest.Wait()
		close(slow.Hold)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		got := slow.Heard()
		missed := messages - len(got) + 1
		if want := fmt.Sprintf(`"data":"%d log messages of the server are left out here`, missed); missed < 1000 || !strings.Contains(got[len(got)-1], want) {
			t.Errorf("of %d messages the caller got %d, the last %.200s, want %s", messages, len(got), got[len(got)-1], want)
		}
		if want := fmt.Sprintf("messages=%d", missed); strings.Count(logs.String(), want) != 1 {
			t.Errorf("log %.500s, want %s", logs.String(), want)
		}
	})
}
