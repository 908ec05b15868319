package link

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// keeper keeps what a server sends.
type keeper struct {
	nobody
	texts []string // by their own memory
	kept  []wire.Message
}

func (k *keeper) Receive(_ context.Context, m *wire.Message, _ *upstream.Call) {
	k.texts = append(k.texts, string(m.Text))
	k.kept = append(k.kept, *m)
}

// What came in a call's stream is the session's for keeps: a question can be with
// its client when the stream has ended, and its bytes must not be lent to another
// call then, whose answer the client would see.
func TestTextOfAStreamOutlivesIt(t *testing.T) {
	question := `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"q":"` + strings.Repeat("q", 6<<10) + `"}}` // most of a buffer, so that it goes without a copy
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n", question)
	}))
	defer server.Close()
	o := testOptions(server.URL)
	e := NewEndpoint(o)
	defer e.Close()
	var k keeper
	l := New(o, &k)
	l.OverHTTP(e)
	defer l.Close(t.Context())
	if _, err := l.Request(t.Context(), spec.MethodPing, nil); err != nil {
		t.Fatal(err)
	}
	for range 8 { // one of them would be the stream's
		b := transport.GetBuffer(0)
		copy(b[:cap(b)], strings.Repeat("x", cap(b)))
	}
	if len(k.kept) != 1 || k.texts[0] != question || string(k.kept[0].Text) != question {
		t.Errorf("kept %d messages, of which the first is not the question as it came", len(k.kept))
	}
}

func TestM2L02DeleteOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		name, session string
		status        int
		want          int
	}{
		{"with a session", "sess-1", http.StatusNoContent, 1},
		{"not supported", "sess-1", http.StatusMethodNotAllowed, 1},
		{"no session", "", 0, 0},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			p := legacytest.NewMemoryServer(t)
			p.Session = tt.session
			p.On["DELETE"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { w.WriteHeader(tt.status) }
			openHTTP(t, p).Close(t.Context())
			ends := p.Requests("DELETE")
			if len(ends) != tt.want {
				t.Fatalf("%d DELETEs, want %d", len(ends), tt.want)
			}
			for _, d := range ends {
				if d.Header.Get("Mcp-Session-Id") != tt.session || d.Header.Get("Mcp-Protocol-Version") != "2025-11-25" || d.Body != "" {
					t.Errorf("DELETE with %v %q", d.Header, d.Body)
				}
			}
		})
	}
}

// A 404 to one client's call says nothing of everybody's session, if that still
// answers ping: a client can provoke it, with a name that the server makes a URL
// of, say.
func TestBare404OfOneCallKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		p.On["resources/read"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { http.Error(w, "no such file", 404) }
		p.On["ping"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, `{}`) }
		p.On["tools/list"] = listOnce
		r := openHTTP(t, p)
		for range 3 {
			if _, err := r.call(t.Context(), "resources/read"); err == nil {
				t.Error("the call = nil error for a 404")
			}
		}
		if _, err := r.call(t.Context(), "tools/list"); err != nil || !r.Alive() {
			t.Errorf("tools/list = %v, alive %v, want the session to go on", err, r.Alive())
		}
		if n := len(p.Requests("resources/read")); n != 3 {
			t.Errorf("3 calls were sent %d times", n)
		}
	})
}

// The client that provoked it and leaves during the ping proves nothing either.
func TestClientThatLeavesKeepsTheSession(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusNotFound} {
		bridgetest.RunBubble(t, fmt.Sprint(status), func(t *testing.T) {
			p := legacytest.NewMemoryServer(t)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			p.On["resources/read"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { w.WriteHeader(status) }
			p.On["ping"] = func(_ http.ResponseWriter, r *http.Request, _ wire.Message) {
				leave()
				<-r.Context().Done()
			}
			p.On["tools/list"] = listOnce
			r := openHTTP(t, p)
			if _, err := r.call(ctx, "resources/read"); err == nil {
				t.Errorf("the call = nil error for a %d", status)
			}
			if _, err := r.call(t.Context(), "tools/list"); err != nil || !r.Alive() {
				t.Errorf("tools/list = %v, alive %v, want the session to go on", err, r.Alive())
			}
		})
	}
}

// A server that puts a ping off says nothing of the session, in whatever form.
func TestM2L03PingThatIsPutOffKeepsTheSession(t *testing.T) {
	for name, ping := range map[string]func(http.ResponseWriter, *http.Request, wire.Message){
		"by the status alone": status(http.StatusTooManyRequests),
		"with an error that answers it": func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"slow down"}}`, m.ID)
		},
	} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			p := legacytest.NewMemoryServer(t)
			p.On["resources/read"] = status(http.StatusNotFound)
			p.On["ping"], p.On["tools/list"] = ping, listOnce
			r := openHTTP(t, p)
			if _, err := r.call(t.Context(), "resources/read"); err == nil {
				t.Error("the call = nil error for a 404")
			}
			if _, err := r.call(t.Context(), "tools/list"); err != nil || !r.Alive() {
				t.Errorf("tools/list = %v, alive %v, want the session to go on", err, r.Alive())
			}
		})
	}
}
