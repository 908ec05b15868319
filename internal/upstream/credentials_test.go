package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

type twoTokens struct{}

func (twoTokens) Authorization(context.Context, Behalf) (string, error) { return "Bearer 1", nil }

func (twoTokens) Renew(_ context.Context, r CredentialRefusal) (string, error) {
	if r.Attempt == 1 && r.Value == "Bearer 1" {
		return "Bearer 2", nil
	}
	return "", &CredentialError{Err: errors.New("no other")}
}

// The handshake of a WebSocket has the gateway's credential beside the configured headers,
// and once more another one if that is refused.
func TestAuthorizedConnection(t *testing.T) {
	refused := errors.New("refused")
	for _, tt := range []struct {
		accepts string
		status  int
		tried   []string
		ok      bool
	}{
		{"Bearer 1", 401, []string{"Bearer 1"}, true},
		{"Bearer 2", 401, []string{"Bearer 1", "Bearer 2"}, true},
		{"Bearer 3", 401, []string{"Bearer 1", "Bearer 2"}, false},
		{"Bearer 3", 502, []string{"Bearer 1"}, false},
	} {
		o := Options{Headers: http.Header{"X-Key": {"k"}}, Credentials: twoTokens{}}
		var tried []string
		err := o.Authorized(t.Context(), func(h http.Header) (int, error) {
			tried = append(tried, h.Get("Authorization"))
			if h.Get("X-Key") != "k" {
				t.Errorf("header = %v, want the configured ones, too", h)
			}
			if h.Get("Authorization") == tt.accepts {
				return 0, nil
			}
			return tt.status, refused
		})
		if !slices.Equal(tried, tt.tried) || (err == nil) != tt.ok {
			t.Errorf("accepting %s: tried %q, %v, want %q and ok %v", tt.accepts, tried, err, tt.tried, tt.ok)
		}
		if len(o.Headers) != 1 {
			t.Errorf("the configured headers became %v", o.Headers)
		}
	}
}

type renewing struct {
	renew func(CredentialRefusal) (string, error)
}

func (renewing) Authorization(context.Context, Behalf) (string, error) { return "Bearer first", nil }

func (c renewing) Renew(_ context.Context, r CredentialRefusal) (string, error) { return c.renew(r) }

// A locked server answers requests with one token, and refuses others.
type lockedServer struct {
	t       *testing.T
	accepts string
	seen    []string // what came as Authorization
}

// RoundTrip implements [http.RoundTripper].
func (s *lockedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.seen = append(s.seen, r.Header.Get("Authorization"))
	if body, err := io.ReadAll(r.Body); err != nil || string(body) != "{}" {
		s.t.Errorf("attempt %d has the body %q, %v", len(s.seen), body, err)
	}
	server := scriptedServer{200, "application/json", okText}
	if r.Header.Get("Authorization") != s.accepts {
		server = scriptedServer{401, "text/plain", "who?"}
	}
	return server.RoundTrip(r)
}

// A request is sent again with a renewed token at most twice, and its body each time.
func TestCredentialsAreRenewedWithinBounds(t *testing.T) {
	always := func(r CredentialRefusal) (string, error) { return fmt.Sprintf("Bearer %d", r.Attempt), nil }
	for _, tt := range []struct {
		name, accepts string
		renew         func(CredentialRefusal) (string, error)
		want          []string // what is tried
		status        int      // zero for an error
	}{
		{"the first", "Bearer first", always, []string{"Bearer first"}, 200},
		{"the third", "Bearer 2", always, []string{"Bearer first", "Bearer 1", "Bearer 2"}, 200},
		{"none", "", always, []string{"Bearer first", "Bearer 1", "Bearer 2"}, 401},
		{"no other", "", func(CredentialRefusal) (string, error) { return "", nil }, []string{"Bearer first"}, 401},
		{"an error", "", func(CredentialRefusal) (string, error) { return "", errors.New("no more") }, []string{"Bearer first"}, 0},
	} {
		server := &lockedServer{t: t, accepts: tt.accepts}
		o := &Options{Name: "scripted", URL: "http://127.0.0.1/mcp", RoundTripper: server, Credentials: renewing{tt.renew}}
		o.Fill(spec.Legacy)
		header := http.Header{"X-Key": {"k"}}
		r, err := NewHTTP(o, Reading{}).Post(t.Context(), nil, header, []byte("{}"))
		if tt.status > 0 && (err != nil || r.Status() != tt.status) || tt.status == 0 && (err == nil || AsFailure(err).Fate != Refused) {
			t.Errorf("%s: Post() = %+v, %v, want status %d", tt.name, r, err, tt.status)
		}
		if err == nil {
			r.Discard()
		}
		if !slices.Equal(server.seen, tt.want) || len(header) != 1 {
			t.Errorf("%s: tried %q, want %q; the header is %v", tt.name, server.seen, tt.want, header)
		}
	}
}

// A request is sent on behalf of its call's client, or else of whom the HTTP is for.
func TestOnBehalfOf(t *testing.T) {
	var got []mcp.Principal
	o := &Options{Name: "s", URL: "http://127.0.0.1/mcp", RoundTripper: scriptedServer{200, "application/json", okText}, Credentials: behalves{&got}}
	o.Fill(spec.Legacy)
	h := NewHTTP(o, Reading{})
	ada := h.As("ada")
	for _, send := range []func() (*Reply, error){
		func() (*Reply, error) { return h.Get(t.Context(), nil, http.Header{}) },
		func() (*Reply, error) { return ada.Get(t.Context(), nil, http.Header{}) },
		func() (*Reply, error) { return ada.At(h.URL()).Get(t.Context(), nil, http.Header{}) },
		func() (*Reply, error) {
			b := BehalfOf(&mcp.Request{Principal: "bob"})
			return ada.Post(t.Context(), &Call{ID: 7, Behalf: b}, http.Header{}, []byte("{}"))
		},
	} {
		r, err := send()
		if err != nil {
			t.Fatal(err)
		}
		r.Discard()
	}
	_, sent := ada.Send(t.Context(), http.Header{}, []byte("{}"))
	if err := errors.Join(ada.Delete(t.Context(), http.Header{}), sent); err != nil {
		t.Error(err)
	}
	if want := []mcp.Principal{"", "ada", "ada", "bob", "ada", "ada"}; !slices.Equal(got, want) || ada.As("ada") != ada {
		t.Errorf("sent on behalf of %q, want %q", got, want)
	}
	if b := BehalfOf(&mcp.Request{Profile: mcp.Profile{Principal: "eve"}}); b != (Behalf{Principal: "eve"}) {
		t.Errorf("a request of the gateway's own is on behalf of %+v", b)
	}
}

// behalves notes on whose behalf requests are.
type behalves struct{ got *[]mcp.Principal }

func (b behalves) Authorization(_ context.Context, of Behalf) (string, error) {
	*b.got = append(*b.got, of.Principal)
	return "", nil
}

func (behalves) Renew(context.Context, CredentialRefusal) (string, error) { return "", nil }

type tardy struct{ twoTokens }

func (tardy) Authorization(ctx context.Context, _ Behalf) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// A request whose time is over, or whose back is closed, while it waits for a credential was not sent.
func TestCredentialThatDoesNotCome(t *testing.T) {
	o := &Options{Name: "scripted", URL: "http://127.0.0.1/mcp", RoundTripper: &lockedServer{t: t}, Credentials: tardy{}}
	o.Fill(spec.Modern)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(mcp.ErrShutdown)
	_, err := NewHTTP(o, Reading{}).Post(ctx, nil, http.Header{}, []byte("{}"))
	if f := AsFailure(err); f == nil || f.Fate != NotSent || f.Cause != mcp.ErrShutdown {
		t.Errorf("Post() = %v, want the cause, and that nothing was sent", err)
	}
}
