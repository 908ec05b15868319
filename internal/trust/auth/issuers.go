package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Issuers accept the access tokens of several issuers at one endpoint. A token is verified as
// one of the issuer that it names, with that issuer's keys and options alone, so that no
// issuer speaks for the users of another. One issuer may be asked about other tokens: none
// ever gets a token that may be of another.
type Issuers struct {
	all    []*JWT
	opaque *JWT // is asked about tokens that are not JWTs; nil for none
}

// NewIssuers returns Issuers, which own all of these. The first is the one that clients are
// expected to choose: its scopes are those that they are told to ask for.
func NewIssuers(all ...*JWT) (*Issuers, error) {
	s := &Issuers{all: all}
	known := make(map[string]bool)
	for _, j := range all {
		switch {
		case known[j.opts.Issuer]:
			return nil, fmt.Errorf("the issuer %s is there twice", j.opts.Issuer)
		case j.inspector != nil && s.opaque != nil:
			return nil, errors.New("only one of several issuers can be asked about tokens: each would see those of the others")
		case j.inspector != nil:
			s.opaque = j
		}
		known[j.opts.Issuer] = true
	}
	if len(all) == 0 {
		return nil, errors.New("want an issuer")
	}
	return s, nil
}

// Start has the keys fetched: see [JWT.Start].
func (s *Issuers) Start() {
	for _, j := range s.all {
		j.Start()
	}
}

// Close closes the issuers.
func (s *Issuers) Close() {
	for _, j := range s.all {
		j.Close()
	}
}

// Authenticate implements [Authenticator].
func (s *Issuers) Authenticate(r *http.Request, e *Endpoint) (*mcp.Identity, error) {
	token, err := credential(r, s.Scopes())
	if err != nil {
		return nil, err
	}
	return s.verify(r.Context(), r, token, e)
}

func (s *Issuers) verify(ctx context.Context, r *http.Request, token string, e *Endpoint) (*mcp.Identity, error) {
	if e == nil || e.Resource == "" {
		return nil, errNoResource
	}
	now := time.Now()
	for _, j := range s.all {
		if id := j.recall(token, e, now); id != nil {
			return id, nil
		}
	}
	if err := wellFormed(token); err != nil {
		return nil, err
	}
	j, err := s.of(token)
	if err != nil {
		return nil, err
	}
	return j.learn(ctx, r, token, e)
}

// of returns what has to verify a token: the issuer that it names, of which nothing is known
// yet, or for other tokens the one that is asked about them.
func (s *Issuers) of(token string) (*JWT, error) {
	if !isJWT(token) {
		if s.opaque == nil {
			return nil, invalid(s.Scopes(), "the token is not a JWT, and no introspection is configured")
		}
		return s.opaque, nil
	}
	named, ok := issuerOf(token)
	for _, j := range s.all {
		if ok && j.opts.Issuer == named {
			return j, nil
		}
	}
	return nil, invalid(s.Scopes(), "it is of the issuer %q, want one of those in auth.jwt", mcp.Shorten(named))
}

// issuerOf returns the issuer that a JWT names. Whether it is of that one is not known.
func issuerOf(token string) (issuer string, ok bool) {
	payload := token[strings.IndexByte(token, '.')+1 : strings.LastIndexByte(token, '.')]
	text, err := base64.RawURLEncoding.DecodeString(payload)
	var c struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(text, &c) != nil {
		return "", false
	}
	return c.Issuer, true
}

// Metadata implements [Resource].
func (s *Issuers) Metadata(e *Endpoint) []byte {
	var names []string
	for _, j := range s.all {
		names = append(names, j.opts.Issuer)
	}
	return metadata(e, s.Scopes(), names...)
}

// Scopes implements [Resource]: they are those of the first issuer.
func (s *Issuers) Scopes() []string { return s.all[0].opts.Scopes }

var _ Resource = (*Issuers)(nil)
