package peer

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A sealer makes the envelopes of this replica, and opens those of others. It is safe for concurrent
// use.
type sealer struct {
	engine  replicas.Engine // which knows the instance of this replica
	keys    atomic.Pointer[keyring]
	nonce   atomic.Uint64 // of the last envelope
	replays replays       // of what was opened
}

// Replace sets the keys for further envelopes. If it fails, nothing has changed.
func (s *sealer) Replace(keys ...string) error {
	ring, err := newKeyring(keys)
	if err != nil {
		return err
	}
	s.keys.Store(ring)
	return nil
}

// seal completes and signs the envelope of a request.
func (s *sealer) seal(e *Envelope, to replicas.Replica, r *http.Request) {
	s.sealUntil(e, to, r, replicas.Now().Add(lifetime))
}

// sealUntil completes and signs an envelope that expires at a time.
func (s *sealer) sealUntil(e *Envelope, to replicas.Replica, r *http.Request, expires time.Time) {
	e.From, e.To = s.engine.View().Self.Instance, to.Instance
	e.Expires, e.Nonce = expires.Truncate(time.Millisecond), s.nonce.Add(1)
	text := e.text()
	sum := s.keys.Load().sign(text, r)
	r.Header[Header] = []string{string(appendMAC(make([]byte, 0, len(text)+64), text, sum[:]))}
}

// Open returns the envelope of a request to the peer listener, and removes its header. The
// error is a [*RefusedError]. An envelope is accepted once.
func (s *sealer) Open(r *http.Request) (*Envelope, error) {
	values := r.Header[Header]
	delete(r.Header, Header)
	if len(values) != 1 || len(values[0]) > maxEnvelope {
		return nil, refused("there is no envelope")
	}
	if v, _, _ := strings.Cut(values[0], ";"); v != firstPart {
		return nil, &RefusedError{Status: http.StatusUnauthorized, Reason: "the envelope is of a version that this replica does not understand; compare the versions of mcpbridge", Version: true}
	}
	text, mac, ok := strings.Cut(values[0], macPart)
	code, err := base64.RawURLEncoding.DecodeString(mac)
	if !ok || err != nil || !s.keys.Load().verify(code, text, r) {
		return nil, refused("the envelope is not signed with a key of this replica; compare replicas.keys")
	}
	e, err := parse(text)
	if err != nil {
		return nil, refused(err.Error())
	}
	if err := s.check(e, r); err != nil {
		return nil, err
	}
	if e.Digest != "" {
		err = checkBody(r, e.Digest)
	}
	return e, err
}

// check checks an envelope whose signature is valid.
func (s *sealer) check(e *Envelope, r *http.Request) error {
	now := replicas.Now()
	isHello := e.To == "" && r.Method == http.MethodGet && r.URL.Path == HelloPath
	switch left := e.Expires.Sub(now); {
	case e.To != s.engine.View().Self.Instance && !isHello:
		return &RefusedError{Status: http.StatusMisdirectedRequest, Reason: "the envelope is for another replica"}
	case left <= 0 || left > 2*lifetime:
		return refused("the envelope has expired, or is not valid yet; compare the clocks of the replicas")
	}
	if err := s.replays.accept(e.From, e.Nonce, now); err != nil {
		return err
	}
	if e.Identity != nil && !e.Identity.Expires.IsZero() && !e.Identity.Accepted().After(now) {
		return &RefusedError{Status: http.StatusUnauthorized, Reason: "the credential has expired", Expired: true}
	}
	return nil
}

// proves returns what the other says of itself, and whether one of the keys has signed it.
func (s *sealer) proves(a *answer) (said greeting, ours bool) {
	proof := a.header.Get(proofHeader)
	for _, k := range s.keys.Load().keys {
		ours = ours || hmac.Equal([]byte(proof), []byte(proofOf(k, a.envelope, a.text)))
	}
	return said, ours && a.status == http.StatusOK && json.Unmarshal(a.text, &said) == nil
}
