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
	// insufficientScope is the error of RFC 6750, 3.1, that names scopes.
	insufficientScope = "insufficient_scope"

	// failurePause is how long a failure to get a token stands before it is tried again:
	// what clients send meanwhile is refused, and not one request to the authorization
	// server each.
	failurePause = 2 * time.Second
	// grantTimeout bounds what it takes to get a token, discovery included.
	grantTimeout = 45 * time.Second
)

// bearer returns the value of Authorization for a token. Empty stays empty.
func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// A holder has one token at a time, and gets another where that has expired or was
// refused. It is safe for concurrent use.
type holder struct {
	// get returns another token than the refused one, with scopes. It outlives the request
	// that needs it: a refresh token that was used is lost with the answer.
	get func(ctx context.Context, refused string, scopes []string) (*held, error)

	// secrets learns the tokens as long as they are in use; nil for nobody.
	secrets *redact.Redactor

	turn   chan struct{} // capacity 1: who has put something in may call get
	now    atomic.Pointer[held]
	failed atomic.Pointer[failure]
}

// A held token is one that was issued, with the scopes that were asked for.
type held struct {
	Token
	value  string // of Authorization
	scopes []string
}

func hold(t Token, scopes []string) *held { return &held{t, bearer(t.AccessToken), scopes} }

// texts are what must not be shown of a token; nil has none.
func (h *held) texts() []string {
	if h == nil {
		return nil
	}
	return []string{h.AccessToken, h.RefreshToken}
}

// A failure is that of a get.
type failure struct {
	err error
	at  time.Time
}

func newHolder(secrets *redact.Redactor, get func(ctx context.Context, refused string, scopes []string) (*held, error)) *holder {
	return &holder{get: get, secrets: secrets, turn: make(chan struct{}, 1)}
}

// put has the holder use a token in place of the last one; nil for none.
func (h *holder) put(t *held) {
	h.secrets.Replace(h.now.Swap(t).texts(), t.texts()...)
}

// value returns the value of Authorization for a request.
func (h *holder) value(ctx context.Context) (string, error) {
	if t := h.now.Load(); t != nil && t.Valid() {
		return t.value, nil
	}
	return h.renew(ctx, "", nil)
}

// renew returns a value other than the refused one, which was granted more scopes.
func (h *holder) renew(ctx context.Context, refused string, more []string) (string, error) {
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
			return t.value, nil // another has done it
		}
		scopes = t.scopes
	}
	if f := h.failed.Load(); f != nil && (f.at.After(began) || time.Since(f.at) < failurePause) {
		return "", f.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grantTimeout)
	defer cancel()
	t, err := h.get(ctx, strings.TrimPrefix(refused, "Bearer "), union(scopes, more))
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

// wants returns the scopes that a server wants with a 403; none if it is about something
// else.
//
// Spec: 2026-07-28, basic/authorization, Runtime Insufficient Scope Errors.
func wants(r *upstream.CredentialRefusal) []string {
	c := ReadChallenge(r.Header)
	if r.Status != http.StatusForbidden || c.Error != insufficientScope {
		return nil
	}
	return c.Scopes()
}

// unusable is the error that there is no credential. step says what to do.
func unusable(err error, step string) error {
	var already *upstream.CredentialError
	if errors.As(err, &already) {
		return already
	}
	return &upstream.CredentialError{Err: err, Step: step}
}

// unusableTo is unusable of one caller: the server may serve others.
func unusableTo(err error, step string) error {
	return &upstream.CredentialError{Err: err, Step: step, Caller: true}
}

// errNoCaller is the answer of a server to what the gateway asks for itself, where only
// callers have tokens.
var errNoCaller = unusableTo(errors.New("wants the token of a caller, and there is none that is valid"), "send requests with a token of the authorization server")

// maxRenewals bounds how often the credential of one request is renewed.
const maxRenewals = 2
