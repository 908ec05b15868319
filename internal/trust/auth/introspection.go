package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// metadataAge is the age at which the issuer's metadata is fetched again. It is used until there is
// a newer one.
const metadataAge = time.Hour

// Introspection configures requests to an issuer about tokens that only the issuer can
// read.
//
// Spec: RFC 7662.
type Introspection struct {
	ClientID, ClientSecret string
}

// An inspector sends introspection requests. It is safe for concurrent use.
type inspector struct {
	issuer  *issuer
	client  Introspection
	ahead   *ahead
	turns   *turns
	refused *refusedTokens

	// mu guards the fields below.
	mu      sync.Mutex
	where   string // empty before metadata was read
	learned time.Time
	tried   time.Time // when newer metadata was last fetched
}

func newInspector(from *issuer, client Introspection, ahead *ahead) (*inspector, error) {
	turns, err := newTurns()
	refused, rerr := newRefusedTokens()
	return &inspector{issuer: from, client: client, ahead: ahead, turns: turns, refused: refused}, errors.Join(err, rerr)
}

// inspect returns the claims of a token. The error is a [*Refusal] if the issuer does not
// know the token, or not any more.
//
// Spec: RFC 7662, 2.
func (i *inspector) inspect(ctx context.Context, token string) (*claims, error) {
	where, err := i.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var answer json.RawMessage
	if err := i.issuer.client.Do(i.request(ctx, where, token), &answer); err != nil {
		return nil, fmt.Errorf("asking the issuer about a token: %w", err)
	}
	return readInspection(answer, i.issuer.name)
}

// request returns the introspection request for a token.
//
// Spec: RFC 7662, 2.1; RFC 6749, 2.3.1.
func (i *inspector) request(ctx context.Context, where, token string) *http.Request {
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, where, strings.NewReader(form.Encode()))
	if err != nil { // endpoint has checked where
		return &http.Request{URL: &url.URL{}, Header: make(http.Header)}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(i.client.ClientID), url.QueryEscape(i.client.ClientSecret))
	return req
}

// endpoint returns the URL for introspection requests. One that is known is used at once, and is
// looked for anew in the background when that is due.
func (i *inspector) endpoint(ctx context.Context) (string, error) {
	i.mu.Lock()
	where, now := i.where, time.Now()
	due := now.Sub(i.learned) >= metadataAge && now.Sub(i.tried) >= refetchAfter
	if due {
		i.tried = now
	}
	i.mu.Unlock()
	if where == "" {
		return i.learn(ctx)
	}
	if due {
		i.ahead.start(func(ctx context.Context) { _, _ = i.learn(ctx) }) // if it fails, it is tried again later
	}
	return where, nil
}

// learn fetches the URL for introspection requests.
func (i *inspector) learn(ctx context.Context) (string, error) {
	m, err := i.issuer.metadata(ctx)
	switch {
	case err != nil:
		return "", err
	case m.Introspection == "":
		return "", errors.New("the issuer's metadata has no introspection_endpoint")
	}
	if err := i.issuer.client.Check(ctx, m.Introspection); err != nil {
		return "", fmt.Errorf("introspection_endpoint: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.where, i.learned = m.Introspection, time.Now()
	return i.where, nil
}

// readInspection reads the issuer's response, which may lack the issuer's name.
//
// Spec: RFC 7662, 2.2.
func readInspection(answer []byte, issuer string) (*claims, error) {
	var state struct {
		Active bool   `json:"active"`
		Type   string `json:"token_type"`
	}
	c := &claims{payload: answer}
	if json.Unmarshal(answer, &state) != nil || json.Unmarshal(answer, c) != nil {
		return nil, errors.New("the issuer's answer about a token can't be read")
	}
	if !state.Active {
		return nil, invalid(nil, "the issuer does not know the token, or not any more")
	}
	if state.Type != "" && !strings.EqualFold(state.Type, "Bearer") {
		return nil, invalid(nil, "the token is not one of the type Bearer")
	}
	if c.Issuer == "" {
		c.Issuer = issuer
	}
	return c, nil
}
