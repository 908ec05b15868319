package upstream

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
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
