package link

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// openSSE opens a session over HTTP+SSE, with a credential, at a path of p. The error is the
// one for the client.
func openSSE(t *testing.T, p *legacytest.EventServer, path string) (*rig, error) {
	t.Helper()
	o := testOptions(p.URL + path)
	o.RoundTripper = p.RoundTripper
	o.Headers = http.Header{"Authorization": {"Bearer s3cret"}}
	r := newRig(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), o.Settings.Timeouts.Connect)
	defer cancel()
	if err := r.OverSSE(ctx, r.endpoint); err != nil {
		return nil, o.ClientError(spec.MethodInitialize, &upstream.Failure{Cause: err, Fate: upstream.NotSent})
	}
	r.closeAfter(t)
	return r, nil
}

// What a client says, and the credentials beside it, go to the configured origin alone.
func TestU03ForeignEndpointIsRefused(t *testing.T) {
	var mu sync.Mutex
	leaked := ""
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		leaked += r.Method + " " + r.URL.String() + " " + r.Header.Get("Authorization")
	}))
	defer thief.Close()
	u, _ := url.Parse(thief.URL)
	for _, tt := range []struct{ name, endpoint, want string }{
		{"another port", thief.URL + "/message", "another origin, http://127.0.0.1:" + u.Port()},
		{"without a scheme", "//127.0.0.1:" + u.Port() + "/message", "another origin"},
		{"another host", "http://localhost:" + u.Port() + "/message", "another origin, http://localhost"},
		{"another scheme", "https://" + u.Host + "/message", "another origin, https://"},
		{"no URL", "http://[::1/?key=s3cret", "holds no URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewEventServer(t)
			p.Endpoint = func(string) string { return tt.endpoint }
			_, err := openSSE(t, p, "/sse")
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `server "scripted"`) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("OverSSE = %v, want an error that names the server and says %q", err, tt.want)
			}
		})
	}
	t.Run("redirect", func(t *testing.T) {
		for _, redirected := range []string{"/sse", "/message"} {
			p := legacytest.NewEventServer(t)
			p.Post = func(w http.ResponseWriter, _ wire.Message) bool {
				w.Header().Set("Location", thief.URL)
				w.WriteHeader(http.StatusTemporaryRedirect)
				return true
			}
			p.Refuse = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
			}
			at := "/sse"
			if redirected == "/sse" {
				at = "/elsewhere"
			}
			r, err := openSSE(t, p, at)
			if err == nil {
				_, err = r.call(t.Context(), "initialize")
			}
			if err == nil || !strings.Contains(err.Error(), "307") || !strings.Contains(err.Error(), "redirects are not followed") {
				t.Errorf("%s redirected: %v, want an error that says that redirects are not followed", redirected, err)
			}
		}
	})
	mu.Lock()
	defer mu.Unlock()
	if leaked != "" {
		t.Errorf("another origin got %s", leaked)
	}
}

// A stream that names no endpoint is given up when the time to connect is over.
func TestU03SilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryEventServer(t)
		p.Refuse = func(w http.ResponseWriter, r *http.Request) {
			legacytest.StartSSE(w)(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
			<-r.Context().Done()
		}
		begun := time.Now()
		_, err := openSSE(t, p, "/silent")
		if err == nil || !strings.Contains(err.Error(), "did not say within timeouts.connect where to post") {
			t.Errorf("OverSSE = %v, want an error that names timeouts.connect", err)
		}
		if took := time.Since(begun); took != upstream.DefaultConnectTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

// The stream's end, and a stream that can't be read any further, are the session's.
func TestU03EndOfTheStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(s *legacytest.EventStream)
		want string
	}{
		{"cut", (*legacytest.EventStream).Cut, "its event stream ended"},
		{"too long a message", func(s *legacytest.EventStream) { s.Write(strings.Repeat("x", 2<<20)) }, "more than 1048576 bytes"},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			p := legacytest.NewMemoryEventServer(t)
			r, err := openSSE(t, p, "/sse")
			if err != nil {
				t.Fatal(err)
			}
			if listening, _ := r.Listening(); !r.IsSSE() || !listening {
				t.Errorf("IsSSE = %v, Listening = %v, want both", r.IsSSE(), listening)
			}
			go tt.end(p.LastStream())
			<-r.Done()
			if err := r.Err(); !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Err = %v, want %q", err, tt.want)
			}
			_, err = r.call(t.Context(), "tools/list")
			if f := upstream.AsFailure(r.Calls.Add(&Call{})); err == nil || f == nil || !f.Lost {
				t.Errorf("a call = %v, and %v, want the session lost", err, f)
			}
		})
	}
}
