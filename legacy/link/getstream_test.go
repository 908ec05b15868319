package link

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// M2L-37's condition: replay is trusted only where the server gave ids and closed
// the stream itself after it said when to come back.
func TestM2L37TrustedReplay(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		abort        bool
		want         bool
	}{
		{"ids, retry, closed", "retry: 5\nid: 1\ndata:\n\n", false, true},
		{"no retry", "id: 1\ndata:\n\n", false, false},
		{"no id", "retry: 5\ndata: {}\n\n", false, false},
		{"cut", "retry: 5\nid: 1\ndata:\n\n", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, tt.stream)
				_ = http.NewResponseController(w).Flush()
				if tt.abort {
					panic(http.ErrAbortHandler)
				}
			}))
			defer server.Close()
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			o := testOptions(server.URL)
			e := NewEndpoint(o)
			defer e.Close()
			h := &streamable{l: New(o, nobody{}), e: e}
			h.adopt("", "")
			g := &getStream{h: h, settled: make(chan struct{}, 1)}
			cut, err := g.serve(t.Context(), streamCut{})
			if err != nil || cut.trusted != tt.want {
				t.Errorf("serve = %+v, %v, want trusted %v", cut, err, tt.want)
			}
		})
	}
}

func TestM2L32OnceMoreAfterInitialized(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refuse  int32 // how many times
		order   string
		channel bool
	}{
		{"refused once", 1, "initialize GET notifications/initialized GET tools/list", true},
		{"never offered", 99, "initialize GET notifications/initialized GET tools/list", false},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			p := legacytest.NewMemoryServer(t)
			var gets atomic.Int32
			p.Get = func(w http.ResponseWriter, r *http.Request) {
				if gets.Add(1) <= tt.refuse {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				legacytest.StartSSE(w)
				<-r.Context().Done()
			}
			p.On["tools/list"] = listOnce
			start := time.Now()
			r := openHTTP(t, p)
			if _, err := r.call(t.Context(), "tools/list"); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 0 {
				t.Errorf("the handshake took %v though the GET was answered at once", took)
			}
			if got, soon := r.Listening(); got != tt.channel || soon {
				t.Errorf("Listening = %v, %v, want %v, and not soon", got, soon, tt.channel)
			}
			if got := p.Order(); got != tt.order {
				t.Errorf("order = %s, want %s", got, tt.order)
			}
		})
	}
}

// A server that fails here is asked again later; the handshake does not wait.
func TestM2L32FailingStreamDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		p.Get = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
		start := time.Now()
		r := openHTTP(t, p)
		if took := time.Since(start); took > 0 {
			t.Errorf("the handshake took %v", took)
		}
		for _, want := range []bool{true, false} {
			if open, soon := r.Listening(); open || soon != want {
				t.Errorf("Listening = %v, %v, want it closed, and soon open: %v", open, soon, want)
			}
			time.Sleep(maxMissed)
		}
	})
}

// A server that sends no headers before its first message delays the handshake
// by the bound and no more; when it does open, that is seen.
func TestM2L32LateStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		open := make(chan struct{})
		p.Get = func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-open:
				legacytest.StartSSE(w)
			case <-r.Context().Done():
			}
			<-r.Context().Done()
		}
		start := time.Now()
		r := openHTTP(t, p)
		if took := time.Since(start); took != streamWait {
			t.Errorf("the handshake took %v, want %v", took, streamWait)
		}
		if now, soon := r.Listening(); now || !soon {
			t.Errorf("Listening = %v, %v before the stream is open, want soon", now, soon)
		}
		close(open)
		synctest.Wait()
		if now, soon := r.Listening(); !now || soon {
			t.Errorf("Listening = %v, %v though the late stream is open", now, soon)
		}
	})
}

// The stream is opened again after what the server asked for, from where it
// stood.
func TestM2L32Reopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		var opened atomic.Int32
		var closed atomic.Int64
		p.Get = func(w http.ResponseWriter, r *http.Request) {
			switch opened.Add(1) {
			case 1:
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "retry: 50\nid: g1\ndata:\n\n")
				closed.Store(time.Now().UnixNano())
			default:
				if since := time.Since(time.Unix(0, closed.Load())); since < 50*time.Millisecond {
					t.Errorf("opened again after %v, want 50ms or more", since)
				}
				legacytest.StartSSE(w)
				<-r.Context().Done()
			}
		}
		openHTTP(t, p)
		time.Sleep(time.Second)
		gets := p.Requests("GET")
		if len(gets) != 2 {
			t.Fatalf("%d GETs, want 2", len(gets))
		}
		if last := gets[1].Header.Get("Last-Event-Id"); last != "g1" {
			t.Errorf("opened again behind %q, want g1", last)
		}
	})
}

// A GET that is refused after it was open, or put off, says that the session is
// gone: with 404, or as many servers do with 400, at once or when it is not about
// replay.
func TestM2L03GetStreamFindsTheSessionLost(t *testing.T) {
	for _, tt := range []struct {
		name, stream string // empty: 503
		status       int
	}{
		{"404", "retry: 1\nid: 1\ndata:\n\n", http.StatusNotFound},
		{"400", "retry: 1\n\n", http.StatusBadRequest},
		{"400 twice, behind an id", "retry: 1\nid: 1\ndata:\n\n", http.StatusBadRequest},
		{"404 after 503", "", http.StatusNotFound},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) { testStreamFindsTheSessionLost(t, tt.stream, tt.status) })
	}
}

func testStreamFindsTheSessionLost(t *testing.T, stream string, status int) {
	p := legacytest.NewMemoryServer(t)
	var gets atomic.Int32
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		if gets.Add(1) > 1 {
			w.WriteHeader(status)
			return
		}
		if stream == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, stream)
	}
	r := openHTTP(t, p)
	select {
	case <-r.Done():
	case <-time.After(bridgetest.Patience):
		t.Errorf("the session is not lost within %v", bridgetest.Patience)
	}
	if _, err := r.call(t.Context(), "tools/list"); err == nil {
		t.Error("a call in a lost session = nil error")
	}
	r.Close(t.Context())
	if d := p.Requests("DELETE"); len(d) != 0 {
		t.Errorf("a lost session was ended with %v", d[0].Header)
	}
	if strings.Contains(p.Order(), "cancelled") {
		t.Errorf("order = %s", p.Order())
	}
}

// status returns a handler that answers with a status, and with no body.
func status(code int) func(http.ResponseWriter, *http.Request, wire.Message) {
	return func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { w.WriteHeader(code) }
}

// answer returns a handler that answers a request with a result.
func answer(result string) func(http.ResponseWriter, *http.Request, wire.Message) {
	return func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, result) }
}

// hang leaves a request without an answer.
func hang(_ http.ResponseWriter, r *http.Request, _ wire.Message) { <-r.Context().Done() }

// A server that has not noticed the end of its stream may refuse another one for long. Its
// session is as good as before, and to end it would discard what the server keeps for it.
func TestM2L03StreamThatIsRefusedLeavesTheSession(t *testing.T) {
	for _, tt := range []struct {
		name string
		code int // of the GETs after the first
		ping func(http.ResponseWriter, *http.Request, wire.Message)
	}{
		{"409", http.StatusConflict, answer(`{}`)},
		{"409, and ping is too slow", http.StatusConflict, hang},
		{"408, and ping is put off as well", http.StatusRequestTimeout, status(http.StatusTooEarly)},
		{"503, and ping is put off as well", http.StatusServiceUnavailable, status(http.StatusTooManyRequests)},
		{"405 though it was open", http.StatusMethodNotAllowed, answer(`{}`)},
		{"400 though it was open", http.StatusBadRequest, answer(`{}`)},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) { testRefusedStreamLeavesTheSession(t, tt.code, tt.ping) })
	}
}

func testRefusedStreamLeavesTheSession(t *testing.T, code int, ping func(http.ResponseWriter, *http.Request, wire.Message)) {
	p := legacytest.NewMemoryServer(t)
	var gets atomic.Int32
	var again atomic.Bool
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		switch {
		case gets.Add(1) == 1:
			legacytest.StartSSE(w)
		case !again.Load():
			w.WriteHeader(code)
		default:
			legacytest.StartSSE(w)(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			<-r.Context().Done()
		}
	}
	p.On["ping"], p.On["tools/list"] = ping, listOnce
	var log bridgetest.Log
	r := newHTTPRig(t, p)
	r.log = log.Logger()
	r.handshake(t)
	for _, wait := range []time.Duration{40 * time.Second, 10 * time.Minute} {
		time.Sleep(wait)
		if _, err := r.call(t.Context(), "tools/list"); err != nil || !r.Alive() {
			t.Fatalf("tools/list = %v, alive %v after %v more, want the session to go on", err, r.Alive(), wait)
		}
	}
	if n := gets.Load(); n > 50 {
		t.Errorf("%d GETs, want pauses that grow", n)
	}
	if n := strings.Count(log.String(), "may be missed"); n != 1 {
		t.Errorf("said %d times that messages may be missed, want once: %s", n, log.String())
	}
	again.Store(true)
	time.Sleep(2 * streamRetries.Max)
	if heard := r.heard(); len(heard) != 1 || r.gaps.Load() != 1 {
		t.Errorf("heard %q, gaps %d, want the one change after one gap", heard, r.gaps.Load())
	}
	if d := p.Requests("DELETE"); len(d) != 0 {
		t.Errorf("%d DELETEs, want none", len(d))
	}
}

// A server that does not say with the GET that it has lost the session says so with a ping, and
// one that can't be reached behind its proxy is gone.
func TestM2L03PingFindsTheSessionLost(t *testing.T) {
	for _, tt := range []struct{ get, ping, deletes int }{
		{http.StatusServiceUnavailable, http.StatusNotFound, 0},
		{http.StatusConflict, http.StatusBadRequest, 0},
		{http.StatusTooManyRequests, http.StatusUnauthorized, 0},
		{http.StatusBadGateway, http.StatusBadGateway, 1}, // it may have the session when it is back
	} {
		bridgetest.RunBubble(t, fmt.Sprint(tt.get, " ", tt.ping), func(t *testing.T) {
			p := legacytest.NewMemoryServer(t)
			var gets atomic.Int32
			p.Get = func(w http.ResponseWriter, _ *http.Request) {
				if gets.Add(1) > 1 {
					w.WriteHeader(tt.get)
					return
				}
				legacytest.StartSSE(w)
			}
			p.On["ping"] = status(tt.ping)
			r := openHTTP(t, p)
			time.Sleep(maxMissed)
			if !r.Alive() {
				t.Error("the session is lost at once")
			}
			time.Sleep(2 * maxMissed)
			if r.Alive() {
				t.Error("the session goes on")
			}
			r.Close(t.Context())
			if n := len(p.Requests("DELETE")); n != tt.deletes {
				t.Errorf("%d DELETEs, want %d", n, tt.deletes)
			}
		})
	}
}

// A stream that was put off and then refused is one that the server does not offer.
func TestM2L32PutOffAndThenRefused(t *testing.T) {
	for _, tt := range []struct {
		first, then int // status; 0: the connection is reset
		order       string
	}{
		{http.StatusTooManyRequests, http.StatusMethodNotAllowed, "GET"},
		{http.StatusServiceUnavailable, http.StatusMethodNotAllowed, "GET"},
		{0, http.StatusMethodNotAllowed, "GET"},
		{http.StatusTooManyRequests, http.StatusNotFound, "GET ping"},
		{http.StatusTooManyRequests, http.StatusBadRequest, "GET ping"},
	} {
		bridgetest.RunBubble(t, fmt.Sprint(tt.first, " ", tt.then), func(t *testing.T) {
			p := legacytest.NewMemoryServer(t)
			var gets atomic.Int32
			p.Get = func(w http.ResponseWriter, _ *http.Request) {
				switch {
				case gets.Add(1) > 1:
					w.WriteHeader(tt.then)
				case tt.first == 0:
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(tt.first)
				}
			}
			p.On["ping"], p.On["tools/list"] = answer(`{}`), listOnce
			r := openHTTP(t, p)
			time.Sleep(2 * maxMissed)
			if open, soon := r.Listening(); open || soon {
				t.Errorf("Listening = %v, %v, want no stream", open, soon)
			}
			if _, err := r.call(t.Context(), "tools/list"); err != nil || !r.Alive() {
				t.Errorf("tools/list = %v, alive %v, want the session to go on", err, r.Alive())
			}
			if got, want := p.Order(), "initialize GET notifications/initialized "+tt.order+" tools/list"; got != want {
				t.Errorf("order = %s, want %s", got, want)
			}
		})
	}
}
