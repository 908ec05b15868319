package front

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An absentClient is a client in a bubble that leaves its responses.
type absentClient struct {
	t       *testing.T
	front   *Front
	session string
	accept  string // empty for no header
}

// newAbsentClient opens a session.
func newAbsentClient(t *testing.T, f *Front, revision string) *absentClient {
	c := &absentClient{t: t, front: f}
	w := c.post(t.Context(), fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`, revision))
	if c.session = w.Header().Get(spec.HeaderSession); c.session == "" {
		t.Fatalf("initialize = %d %s", w.Code, w.Body)
	}
	return c
}

// post posts a message, until the response is there or ctx ends.
func (c *absentClient) post(ctx context.Context, text string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.postTo(ctx, w, text)
	return w
}

// postTo is post with a response of the caller's.
func (c *absentClient) postTo(ctx context.Context, w http.ResponseWriter, text string) {
	m, err := wire.Parse([]byte(text), wire.Options{})
	if err != nil {
		c.t.Error(err)
	}
	r := httptest.NewRequestWithContext(ctx, "POST", "/", nil)
	if c.session != "" {
		r.Header.Set(spec.HeaderSession, c.session)
	}
	if c.accept != "" {
		r.Header.Set("Accept", c.accept)
	}
	c.front.ServePost(w, r, []byte(text), &m, mcp.Sender{Share: mcp.Share{Principal: "ada"}})
}

// resume reads a call's stream from its begin, until it is over or ctx ends.
func (c *absentClient) resume(ctx context.Context, id string) string {
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil)
	r.Header.Set(spec.HeaderSession, c.session)
	r.Header.Set(spec.HeaderLastEventID, id)
	c.front.ServeGet(w, r, mcp.Sender{Share: mcp.Share{Principal: "ada"}})
	return w.Body.String()
}

// leave posts a call, and hangs up after a time.
func (c *absentClient) leave(after time.Duration) *httptest.ResponseRecorder {
	ctx, hangUp := context.WithTimeout(c.t.Context(), after)
	defer hangUp()
	return c.post(ctx, `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"x"}}`)
}

func eventID(w *httptest.ResponseRecorder) string {
	_, id, _ := strings.Cut(w.Body.String(), "id: ")
	id, _, _ = strings.Cut(id, "\n")
	return id
}

// A call whose response nobody reads for a minute is cancelled, and its client hears so if
// it comes back. Until then it can resume.
func TestF09GoneClient(t *testing.T) {
	for _, tt := range []struct {
		name, revision string
		leaves         time.Duration
		resumes, stays time.Duration // since it left, if not zero; and how long it reads then
		want           time.Duration // when the call is cancelled, since it began
	}{
		{"before there is a stream", "2025-06-18", 5 * time.Second, 0, 0, 65 * time.Second},
		{"after there is one", "2025-06-18", 20 * time.Second, 0, 0, 80 * time.Second},
		{"that has event ids", "2025-11-25", 5 * time.Second, 0, 0, 65 * time.Second},
		{"that is resumed", "2025-11-25", 5 * time.Second, 50 * time.Second, time.Hour, time.Hour + 115*time.Second},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			st := newScripted()
			begun := time.Now()
			var took time.Duration
			st.handle = func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (string, error) {
				<-ctx.Done()
				took = time.Since(begun)
				return "", context.Cause(ctx)
			}
			f := st.open(t, nil)
			defer func() { _ = f.Close(context.Background()) }()
			c := newAbsentClient(t, f, tt.revision)
			id := eventID(c.leave(tt.leaves))
			if tt.resumes > 0 {
				time.Sleep(tt.resumes)
				ctx, hangUp := context.WithTimeout(t.Context(), tt.stays)
				defer hangUp()
				c.resume(ctx, id)
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if took != tt.want {
				t.Errorf("cancelled after %v, want %v", took, tt.want)
			}
			if id == "" {
				return
			}
			if got := c.resume(t.Context(), id); !strings.Contains(got, `"id":"c","error":{"code":-32603`) || !strings.Contains(got, "no connection for 1m0s") {
				t.Errorf("who comes back reads %q, want the error", got)
			}
		})
	}
}

// The same where the session is passed on: the server gets the cancellation.
func TestF09GoneClientOfALegacyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := backWithPeers(t)
		st := newScripted()
		f := st.open(t, func(o *Options) { o.Relayer = b })
		defer func() { _ = f.Close(context.Background()) }()
		left, cancelled := make(chan time.Time, 1), make(chan time.Time, 1)
		go func() {
			p := <-peers
			p.Handshake(legacytest.Everything)
			m := p.Want("tools/call")
			if c := p.Want(spec.NotifyCancelled); string(wire.Get(c.Params, "requestId")) != m.ID.String() {
				t.Errorf("cancelled %s, want %s", c.Params, m.ID)
			}
			cancelled <- time.Now()
		}()
		c := newAbsentClient(t, f, "2025-11-25")
		c.post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		id := eventID(c.leave(5 * time.Second))
		left <- time.Now()
		if after := (<-cancelled).Sub(<-left); after != time.Minute {
			t.Errorf("cancelled after %v, want a minute", after)
		}
		time.Sleep(10 * time.Second)
		if got := c.resume(t.Context(), id); !strings.Contains(got, "no connection for 1m0s") {
			t.Errorf("who comes back reads %q, want the error", got)
		}
	})
}

// The end of a session ends its calls with an error also where the response is a stream by then, and
// its connection ends after that. It waits neither for a handler that does not heed its context, nor
// for a client that does not read.
func TestF09SessionsEndAnswersStreams(t *testing.T) {
	const said = `"error":{"code":-32001,`
	for _, tt := range []struct {
		name    string
		handler time.Duration // until it returns, once it is cancelled
		asks    bool          // it asks its client, and takes the question back
		stalled bool          // the client does not read
		want    string        // is in the response
		within  time.Duration // the response and the session end
	}{
		{"answers", 10 * time.Millisecond, false, false, said, 10 * time.Millisecond},
		{"takes a question back", 10 * time.Millisecond, true, false, said, 10 * time.Millisecond},
		{"a handler that goes on", time.Hour, false, false, "", cutGrace},
		{"a client that does not read", 0, true, true, "", cutGrace},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			st := newScripted()
			st.handle = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (string, error) {
				_ = x.Notify(ctx, mcp.Notification{Method: spec.NotifyProgress, Params: []byte(`{"progressToken":1,"progress":1}`)})
				if tt.asks {
					_, _ = x.RequestInput(ctx, []mcp.InputRequest{{Method: spec.MethodElicit, Params: []byte(`{"message":"name?","requestedSchema":{"type":"object","properties":{}}}`)}})
				}
				<-ctx.Done()
				time.Sleep(tt.handler)
				return "", context.Cause(ctx)
			}
			var over time.Time
			f := st.open(t, func(o *Options) {
				o.Limits = limits.Set{"client_events": 10}
				o.Ended = func(*Ended) { over = time.Now() }
			})
			defer func() { _ = f.Close(context.Background()) }()
			c := newAbsentClient(t, f, "2025-11-25")
			reads := make(chan struct{})
			defer func() { <-reads }()
			w := &stallingWriter{ResponseRecorder: httptest.NewRecorder()}
			if tt.stalled {
				w.stalled = make(chan struct{})
				defer close(w.stalled)
			}
			var done time.Time
			go func() {
				defer close(reads)
				c.postTo(t.Context(), w, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}`)
				done = time.Now()
			}()
			synctest.Wait()
			begin := time.Now()
			f.sessions.end(st.only(t), endedByClient)
			time.Sleep(tt.within)
			synctest.Wait()
			if at := over.Sub(begin); tt.handler < time.Hour && at != tt.within {
				t.Errorf("the session was over after %v, want %v", at, tt.within)
			}
			if tt.stalled {
				return
			}
			if at := done.Sub(begin); at != tt.within || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("the response was over after %v: %s\nwant %s in it after %v", at, w.Body, tt.want, tt.within)
			}
		})
	}
}

// A stallingWriter writes the response of a client that reads nothing before stalled is closed.
type stallingWriter struct {
	*httptest.ResponseRecorder
	stalled chan struct{} // nil for a client that reads
}

func (w *stallingWriter) Write(text []byte) (int, error) {
	if w.stalled != nil {
		<-w.stalled
	}
	return w.ResponseRecorder.Write(text)
}
