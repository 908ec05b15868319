package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A primed stream that the server closes is resumed behind the last event, the
// empty one too, after the time it asked for; the request is sent once.
func TestM2L15Resume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		var id atomic.Value
		var ended atomic.Int64
		p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			id.Store(m.ID)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: a1\ndata:\n\nretry: 30\nid: a2\ndata: \n\n")
			ended.Store(time.Now().UnixNano())
		}
		var gets atomic.Int32
		p.Get = func(w http.ResponseWriter, r *http.Request) {
			last := r.Header.Get("Last-Event-Id")
			if last == "" { // the standalone stream
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			if since := time.Since(time.Unix(0, ended.Load())); since < 30*time.Millisecond {
				t.Errorf("resumed after %v, want 30ms or more", since)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			switch gets.Add(1) {
			case 1:
				fmt.Fprintf(w, "id: a3\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":1}}\n\nretry: 10\n\n", id.Load())
			case 2: // says nothing: the position stays
			default:
				fmt.Fprintf(w, "id: a4\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"ok\":1}}\n\n", id.Load())
			}
		}
		r := openHTTP(t, p)
		start := time.Now()
		got, err := r.call(t.Context(), "tools/call")
		if err != nil || got != `{"ok":1}` {
			t.Fatalf("the call = %s, %v", got, err)
		}
		if took := time.Since(start); took < time.Second { // the silent one named no time: 1 s
			t.Errorf("the call took %v, want a wait of 1s where the server named none", took)
		}
		if n := len(p.Requests("tools/call")); n != 1 {
			t.Errorf("the request was sent %d times, want once", n)
		}
		var positions []string
		for _, s := range p.Requests("GET") {
			if v := s.Header.Get("Last-Event-Id"); v != "" {
				positions = append(positions, v)
				if s.Header.Get("Mcp-Session-Id") != "sess-1" || s.Header.Get("Accept") != "text/event-stream" {
					t.Errorf("resumed with %v", s.Header)
				}
			}
		}
		if got := strings.Join(positions, " "); got != "a2 a3 a3" {
			t.Errorf("resumed behind %s, want a2 a3 a3", got)
		}
		if notes := r.heard(); len(notes) != 1 {
			t.Errorf("heard %q, want the one progress", notes)
		}
	})
}

// A cut in the network with an event id is resumed as well, and a server that is
// away for a moment, has no room, or has not noticed the cut, asked again.
func TestM2L15ResumeAfterACut(t *testing.T) {
	for _, status := range []int{503, 429, 409, 408, 425} {
		bridgetest.RunBubble(t, fmt.Sprint(status), func(t *testing.T) { testResumeAfterACut(t, status) })
	}
}

func testResumeAfterACut(t *testing.T, status int) {
	p := legacytest.NewMemoryServer(t)
	var id atomic.Value
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		id.Store(m.ID)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "retry: 1\nid: x\ndata:\n\n")
		legacytest.Flush(w)
		panic(http.ErrAbortHandler)
	}
	var gets atomic.Int32
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Last-Event-Id") == "":
			w.WriteHeader(http.StatusMethodNotAllowed)
		case gets.Add(1) == 1:
			w.WriteHeader(status)
		default:
			legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":%s,"result":{"ok":1}}`, id.Load())
		}
	}
	got, err := openHTTP(t, p).call(t.Context(), "tools/call")
	if err != nil || got != `{"ok":1}` {
		t.Errorf("the call = %s, %v", got, err)
	}
	if n := len(p.Requests("tools/call")); n != 1 {
		t.Errorf("the request was sent %d times, want once", n)
	}
}

// expiring are credentials of a caller whose token ends with the stream of its call. There is another
// one to read on with when it was missing so often.
type expiring struct{ missing atomic.Int32 }

// Authorization implements [upstream.Credentials].
func (e *expiring) Authorization(_ context.Context, b upstream.Behalf) (string, error) {
	switch {
	case !b.Reads:
		return "Bearer first", nil
	case e.missing.Add(-1) >= 0:
		return "", &upstream.CredentialError{Err: errors.New("wants the token of a caller"), Caller: true}
	}
	return "Bearer next", nil
}

// Renew implements [upstream.Credentials].
func (e *expiring) Renew(context.Context, upstream.CredentialRefusal) (string, error) {
	return "", &upstream.CredentialError{Err: errors.New("refuses the token of the caller"), Caller: true}
}

// A call whose stream ends after its token is read on with the next one of its principal; that there
// is none yet is said once.
func TestM2L15ResumeWithTheNextToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		var id atomic.Value
		p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			id.Store(m.ID)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "retry: 1\nid: x\ndata:\n\n")
		}
		p.Get = func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get("Last-Event-Id") == "":
				w.WriteHeader(http.StatusMethodNotAllowed)
			case r.Header.Get("Authorization") != "Bearer next":
				w.WriteHeader(http.StatusUnauthorized)
			default:
				legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":%s,"result":{"ok":1}}`, id.Load())
			}
		}
		log, tokens, o := new(strings.Builder), new(expiring), testOptions(p.URL)
		tokens.missing.Store(3)
		o.RoundTripper, o.Credentials, o.Logger = p.RoundTripper, tokens, slog.New(slog.NewTextHandler(log, nil))
		r := newRig(t, o)
		r.OverHTTP(r.endpoint)
		r.closeAfter(t)
		r.handshake(t)
		c := &Call{Call: upstream.Call{Method: "tools/call", Behalf: upstream.Behalf{Principal: "ada", Identity: &mcp.Identity{Principal: "ada"}}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := r.RoundTrip(ctx, c, []byte(`{}`))
		if err != nil || string(got) != `{"ok":1}` {
			t.Errorf("the call = %s, %v", got, err)
		}
		if n := len(p.Requests("tools/call")); n != 1 {
			t.Errorf("the request was sent %d times, want once", n)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "can't be read on"); n != 1 {
			t.Errorf("log = %s, want one line about it", log)
		}
	})
}

// What can't be resumed may have run.
func TestM2L15ResumeRefused(t *testing.T) {
	for _, status := range []int{404, 405, 400} {
		bridgetest.RunBubble(t, fmt.Sprint(status), func(t *testing.T) {
			p := legacytest.NewMemoryServer(t)
			p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "retry: 1\nid: x\ndata:\n\n")
			}
			p.Get = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }
			_, err := openHTTP(t, p).call(t.Context(), "tools/call")
			if err == nil || !strings.Contains(err.Error(), "may have taken effect") || !strings.Contains(err.Error(), fmt.Sprint(status)) {
				t.Errorf("the call = %v, want an error that says what may have happened", err)
			}
			if n := len(p.Requests("tools/call")); n != 1 {
				t.Errorf("the request was sent %d times, want once", n)
			}
		})
	}
}

func TestM2L15ResumeEndsWithTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "retry: 1\nid: x\ndata:\n\n")
		}
		p.Get = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "retry: 1\n\n")
		}
		r := openHTTP(t, p)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, upstream.ErrTooLong)
		defer cancel()
		_, err := r.call(ctx, "tools/call")
		if err == nil || !strings.Contains(err.Error(), "did not answer tools/call within") {
			t.Errorf("the call = %v, want a time-out", err)
		}
	})
}

// An answer counts on whatever stream it comes, and ends the wait on its own.
func TestM2L15AnswerOnAnotherStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		own  func(w http.ResponseWriter, r *http.Request)
	}{
		{"own stream open", func(w http.ResponseWriter, r *http.Request) {
			legacytest.StartSSE(w)
			<-r.Context().Done()
		}},
		{"merely accepted", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusAccepted) }},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			p := legacytest.NewMemoryServer(t)
			ids := make(chan wire.ID, 1)
			p.Get = func(w http.ResponseWriter, r *http.Request) {
				send := legacytest.StartSSE(w)
				select {
				case id := <-ids:
					send(`{"jsonrpc":"2.0","id":%s,"result":{"ok":1}}`, id)
				case <-r.Context().Done():
				}
				<-r.Context().Done()
			}
			p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
				ids <- m.ID
				tt.own(w, r)
			}
			got, err := openHTTP(t, p).call(t.Context(), "tools/call")
			if err != nil || got != `{"ok":1}` {
				t.Errorf("the call = %s, %v", got, err)
			}
			p.CloseClientConnections()
		})
	}
}

// A request merely accepted, with nowhere else to answer, fails at once.
func TestM2L15AcceptedWithoutAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := openHTTP(t, legacytest.NewMemoryServer(t)) // answers 202 to what it does not know
		start := time.Now()
		_, err := r.call(t.Context(), "tools/call")
		if err == nil || !strings.Contains(err.Error(), "accepted the request without answering") {
			t.Errorf("the call = %v", err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("the call took %v", took)
		}
	})
}

// 2025-03-26 has batches: they are taken apart wherever they come, behind the response, too.
func TestL2M05BatchesFromUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		p.Revision = "2025-03-26"
		const note = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%[1]s,"progress":%[2]d}}`
		p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `[`+note+`, {"jsonrpc":"2.0","id":%[1]s,"result":{"json":1}}, `+note+`]`, m.ID, 1)
		}
		p.On["prompts/get"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			legacytest.StartSSE(w)(`[`+note+`,"junk",{"jsonrpc":"2.0","id":%[1]s,"result":{"sse":1}},`+note+`]`, m.ID, 1)
		}
		for method, want := range map[string]string{"tools/call": `{"json":1}`, "prompts/get": `{"sse":1}`} {
			r := openHTTP(t, p)
			got, err := r.call(t.Context(), method)
			if err != nil || got != want || len(r.heard()) != 2 {
				t.Errorf("%s = %s, %v, heard %q, want %s and two notifications", method, got, err, r.heard(), want)
			}
		}
	})
}

// F-07: an answer that is no answer fails its call, on whatever transport.
func TestF07UnreadableAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := openPipe(t)
		go func() {
			m := p.Want("tools/call")
			p.Write(`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"x"}}`, m.ID)
		}()
		_, err := r.call(t.Context(), "tools/call")
		if err == nil || !strings.Contains(err.Error(), "can't be read") || !strings.Contains(err.Error(), `server "scripted"`) {
			t.Errorf("the call = %v, want an error that names the server", err)
		}
	})
}

func TestAnswerBeyondTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		big := `{"text":"` + strings.Repeat("x", 10_000) + `"}`
		p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, big) }
		p.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, big)
		}
		r := newHTTPRig(t, p)
		r.opts.MaxMessage = 5000
		r.handshake(t)
		for _, method := range []string{"tools/call", "tools/list"} {
			_, err := r.call(t.Context(), method)
			if err == nil || !strings.Contains(err.Error(), "5000 bytes") {
				t.Errorf("%s = %v, want an error that names the limit", method, err)
			}
			if n := len(p.Requests(method)); n != 1 {
				t.Errorf("%s was sent %d times, want once: it would be as large again", method, n)
			}
		}
	})
}

// The stream behind an answer is read to its end, so that connections are used
// again.
func TestConnectionsAreUsedAgain(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}
	p.On["tools/list"] = listOnce
	var conns atomic.Int32
	settings := transport.NewHTTP(time.Second, nil)
	settings.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conns.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	rt := http1.NewTransport(settings)
	defer rt.CloseIdleConnections()
	p.RoundTripper = rt
	r := openHTTP(t, p)
	for i := range 20 {
		if _, err := r.call(t.Context(), []string{"tools/call", "tools/list"}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n > 3 {
		t.Errorf("%d connections for calls one after the other, want them used again", n)
	}
}

// A server that leaves its streams open after the answer costs a connection each
// time, but no more than a few short waits.
func TestStreamsLeftOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tailTimeout = 100 * time.Millisecond // for the end of a stream after the response
		p := legacytest.NewMemoryServer(t)
		p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
			<-r.Context().Done()
		}
		r := openHTTP(t, p)
		start := time.Now()
		const calls = 100 // waited for each time, they would take twice what they may
		for range calls {
			if _, err := r.call(t.Context(), "tools/call"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > calls*tailTimeout/2 {
			t.Errorf("%d calls took %v", calls, took)
		}
	})
}
