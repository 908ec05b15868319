package login

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

const (
	// insufficientScope is the error code of RFC 6750, 3.1, for missing scopes.
	insufficientScope = "insufficient_scope"

	// failurePause is how long a failed attempt to get a token is not repeated. Requests in
	// that time have the token before as long as it lives, and else fail at once, instead of
	// causing one request each to the authorization server.
	failurePause = 2 * time.Second
	// grantTimeout limits the time to get a token, including discovery.
	grantTimeout = 45 * time.Second
)

// bearer returns the value of Authorization for a token. Empty stays empty.
func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// A holder holds one token at a time, and gets another one if it has expired or was
// refused. It is safe for concurrent use.
type holder struct {
	// get returns another token than the refused one, with scopes. It does not end with the
	// request that needs it: otherwise a used refresh token would be lost with the
	// response.
	get func(ctx context.Context, refused string, scopes []string) (*held, error)

	// secrets hides the tokens while they are in use; may be nil.
	secrets *redact.Redactor

	turn   chan struct{} // capacity 1: held while get runs
	now    atomic.Pointer[held]
	failed atomic.Pointer[failure]
}

// A held token is an issued token, with the requested scopes.
type held struct {
	Token
	value  string // of Authorization
	scopes []string
}

func hold(t Token, scopes []string) *held { return &held{t, bearer(t.AccessToken), scopes} }

// texts returns the parts of a token that must be hidden; none for nil.
func (h *held) texts() []string {
	if h == nil {
		return nil
	}
	return []string{h.AccessToken, h.RefreshToken}
}

// A failure is the failure of a get.
type failure struct {
	err error
	at  time.Time
}

func newHolder(secrets *redact.Redactor, get func(ctx context.Context, refused string, scopes []string) (*held, error)) *holder {
	return &holder{get: get, secrets: secrets, turn: make(chan struct{}, 1)}
}

// put replaces the token; nil means none.
func (h *holder) put(t *held) {
	h.secrets.Replace(h.now.Swap(t).texts(), t.texts()...)
}

// value returns the value of Authorization for a request. A token that ends soon is replaced
// before, and used if that fails.
func (h *holder) value(ctx context.Context) (string, error) {
	t := h.now.Load()
	if t != nil && t.Valid() {
		return t.value, nil
	}
	value, err := h.renew(ctx, "", nil)
	if err != nil && ctx.Err() == nil && t != nil && t.lives() && t == h.now.Load() {
		return t.value, nil
	}
	return value, err
}

// renew returns another value than the refused one, with more scopes.
func (h *holder) renew(ctx context.Context, refused string, more []string) (string, error) {
	return h.renewUntil(context.WithoutCancel(ctx), ctx, refused, more)
}

// renewUntil is renew for who waits with ctx; get may go on until live ends.
func (h *holder) renewUntil(live, ctx context.Context, refused string, more []string) (string, error) {
	began := time.Now()
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	var scopes []string
	if t := h.now.Load(); t != nil {
		if t.Valid() && t.value != refused && covers(t.scopes, more) {
			return t.value, nil // another request has renewed it
		}
		scopes = t.scopes
	}
	if f := h.failed.Load(); f != nil && (f.at.After(began) || time.Since(f.at) < failurePause) {
		return "", f.err
	}
	live, cancel := context.WithTimeout(live, grantTimeout)
	defer cancel()
	t, err := h.get(live, strings.TrimPrefix(refused, "Bearer "), union(scopes, more))
	if err != nil {
		h.failed.Store(&failure{err, time.Now()})
		return "", err
	}
	h.failed.Store(nil)
	h.put(t)
	return t.value, nil
}

// covers reports whether scopes have all of more.
func covers(scopes, more []string) bool { return len(union(scopes, more)) == len(union(scopes, nil)) }

// wants returns the scopes that a server requires with a 403; none if the 403 has another
// reason.
//
// Spec: 2026-07-28, basic/authorization, Runtime Insufficient Scope Errors.
func wants(r *upstream.CredentialRefusal) []string {
	c := ReadChallenge(r.Header)
	if r.Status != http.StatusForbidden || c.Error != insufficientScope {
		return nil
	}
	return c.Scopes()
}

// unusable returns the error if there is no credential. step says what to do.
func unusable(err error, step string) error {
	var already *upstream.CredentialError
	if errors.As(err, &already) {
		return already
	}
	return &upstream.CredentialError{Err: err, Step: step}
}

// unusableTo is unusable for one caller: the server may serve others.
func unusableTo(err error, step string) error {
	return &upstream.CredentialError{Err: err, Step: step, Caller: true}
}

// maxRenewals limits how often the credential of one request is renewed.
const maxRenewals = 2
