package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A stranger listens where the engine says that a replica is, and keeps what it is sent.
type stranger struct {
	*httptest.Server
	mu   sync.Mutex
	sent strings.Builder
}

func newStranger(t *testing.T, answer http.HandlerFunc) *stranger {
	s := new(stranger)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		_, _ = fmt.Fprintf(&s.sent, "%s %s %v %s\n", r.Method, r.URL.Path, r.Header, body)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *stranger) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent.String()
}

// forwardSecret forwards a request with a token, and returns what its client sees.
func forwardSecret(g *Group, to replicas.Replica) (string, error) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/mcp/files", strings.NewReader(`{"secret":1}`))
	r.Header.Set("Authorization", "Bearer token-of-alice")
	err := g.Forward(w, r, Forward{To: to, Path: "/mcp/files", WriteTimeout: time.Second})
	return w.Body.String(), err
}

// Who can write to the engine, and has no key, names its own address as that of a replica. It
// is sent neither a credential nor a body, and nothing that it answers reaches a client.
func TestForwardToStranger(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a page":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "forged") },
		"a refusal": func(w http.ResponseWriter, _ *http.Request) { Refuse(w, errMalformed) },
		"an error":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "forged", http.StatusInternalServerError) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"its own key": strangersKey(t),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStranger(t, answer)
			g := newGroup(t, edge, testKey)
			fake := replicas.Replica{Instance: holder.Instance, Addr: s.Listener.Addr().String()}
			for range 3 {
				refusing := (*RefusingError)(nil)
				if text, err := forwardSecret(g, fake); !errors.As(err, &refusing) || text != "" {
					t.Errorf("= %q, %v, want that it is no replica", text, err)
				}
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/peer/session/files", strings.NewReader(`{"token":"secret"}`))
			if resp, err := g.RoundTripper(fake, nil).RoundTrip(req); err == nil {
				_ = resp.Body.Close()
				t.Error("a session is handed to it")
			}
			if text := s.text(); strings.Contains(text, "token-of-alice") || strings.Contains(text, "secret") {
				t.Errorf("it was sent %s", text)
			}
		})
	}
}

// strangersKey answers a hello with another key.
func strangersKey(t *testing.T) http.HandlerFunc {
	g := newGroup(t, holder, "a key of somebody else")
	return func(w http.ResponseWriter, r *http.Request) {
		e, err := parse(r.Header.Get(Header))
		if err != nil {
			e = new(Envelope)
		}
		g.ServeHello(w, r, e)
	}
}

// A replica proves once that it is one, for all requests that wait for that, and on each of their
// connections that it is there.
func TestForwardAfterProof(t *testing.T) {
	hold := newGroup(t, holder, testKey)
	var mu sync.Mutex
	hellos := 0
	s := newStranger(t, func(w http.ResponseWriter, r *http.Request) {
		e, err := hold.Open(r)
		switch {
		case err != nil:
			Refuse(w, err)
		case r.URL.Path == HelloPath:
			mu.Lock()
			hellos++
			mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			hold.ServeHello(w, r, e)
		default:
			_, _ = io.WriteString(w, "served")
		}
	})
	g := newGroup(t, edge, testKey)
	g.timeout = bridgetest.Patience // a busy machine answers late
	to := replicas.Replica{Instance: holder.Instance, Addr: s.Listener.Addr().String()}
	begun := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if text, err := forwardSecret(g, to); text != "served" {
				t.Errorf("= %q, %v", text, err)
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if hellos > 50+5+int(time.Since(begun)/time.Second) { // one each second that the requests last, on a busy machine
		t.Errorf("%d hellos for 50 requests, want one for all, and one for each connection", hellos)
	}
}

// An address that a replica has left is somebody else's: nothing is sent there until that has
// proved to be a replica.
func TestForwardToReusedAddress(t *testing.T) {
	d, g := served(t)
	d.set(refuse)
	if _, err := call(g); !isGone(err) {
		t.Fatalf("after its end: %v", err)
	}
	s := newStranger(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(200 * time.Millisecond)
		_, _ = io.WriteString(w, "forged")
	})
	d.set(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
	})
	for end := time.Now().Add(2 * dialEvery); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if text, err := forwardSecret(g, holder); err == nil || text != "" {
			t.Fatalf("= %q, %v", text, err)
		}
	}
	if text := s.text(); !strings.Contains(text, HelloPath) || strings.Contains(text, "secret") {
		t.Errorf("it was sent %q, want a question alone", text)
	}
}
