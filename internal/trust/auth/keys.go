package auth

import (
	"context"
	"crypto"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// maxKeys limits the keys of an issuer that are read.
	maxKeys = 100
	// minRSA is the minimum length of an RSA modulus, in bits. Spec: RFC 7518, 3.3.
	minRSA = 2048
	// refreshAfter is the age at which keys are fetched again even if all tokens have known
	// keys: otherwise a withdrawn key would stay valid.
	refreshAfter = 5 * time.Minute
	// refetchAfter is the minimum time between two fetches, because anybody can send tokens
	// with unknown keys; retryAfter is the same after one that has failed.
	refetchAfter = time.Minute
	retryAfter   = 5 * time.Second
	// maxWaiting limits the requests that wait for keys.
	maxWaiting = 100
)

// errNoKeys says that the last attempt to fetch the keys of the issuer has failed, or has not ended.
var errNoKeys = errors.New("the keys of the issuer could not be fetched yet")

// A publicKey is a key of an issuer.
type publicKey struct {
	jose.JSONWebKey
	print string      // its thumbprint
	gone  atomic.Bool // the issuer does not publish it any more
}

// A keySet has the keys of an issuer. If a fetch fails, it keeps the last ones. It is safe
// for concurrent use.
type keySet struct {
	issuer *issuer
	log    *slog.Logger
	life   context.Context // of fetches; ends with close
	end    context.CancelFunc

	running sync.WaitGroup

	// mu guards the fields below.
	mu       sync.Mutex
	keys     []*publicKey
	loaded   time.Time     // when the keys were fetched; zero for never
	failed   bool          // the last attempt has: a key that is not known may be the issuer's
	tried    time.Time     // when the last attempt began
	fetching chan struct{} // closed at the end of the current attempt; nil if there is none
	waiting  int
	closed   bool
}

func newKeySet(from *issuer, log *slog.Logger) *keySet {
	s := &keySet{issuer: from, log: log.With("issuer", from.url.Redacted())}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// close stops fetches, and waits for their end.
func (s *keySet) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.running.Wait()
}

// find returns the key that a token names. If necessary, and not done recently, it fetches
// the keys. The error is a [*Refusal] if there is no such key.
func (s *keySet) find(ctx context.Context, id, algorithm string) (*publicKey, error) {
	key, fetched, err := s.known(id, algorithm)
	if key != nil || err != nil {
		return key, err
	}
	select {
	case <-fetched:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	switch key = s.lookupLocked(id, algorithm); {
	case key != nil:
		return key, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, s.missingLocked(id)
}

// known returns a known key. If the key is unknown, it returns a channel to wait for the
// keys, and counts the caller as waiting.
func (s *keySet) known(id, algorithm string) (key *publicKey, fetched <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	key = s.lookupLocked(id, algorithm)
	if key == nil || now.Sub(s.loaded) >= refreshAfter {
		fetched = s.fetchLocked(now)
	}
	switch {
	case key != nil: // it is valid until the issuer withdraws it
		return key, nil, nil
	case fetched == nil:
		return nil, nil, s.missingLocked(id)
	case s.waiting >= maxWaiting:
		return nil, nil, &BusyError{Limit: "auth_waiting", Most: maxWaiting}
	}
	s.waiting++
	return nil, fetched, nil
}

// missingLocked returns the error for an unknown key.
func (s *keySet) missingLocked(id string) error {
	if s.loaded.IsZero() || s.failed {
		return errNoKeys
	}
	return invalid(nil, "the issuer has no key %q for its algorithm", mcp.Shorten(id))
}

// lookupLocked returns the key with an id for an algorithm; nil if there is none. The id
// may be empty if there is only one key for the algorithm.
func (s *keySet) lookupLocked(id, algorithm string) (found *publicKey) {
	for _, k := range s.keys {
		switch {
		case !k.isFor(algorithm) || id != "" && k.KeyID != id:
		case found != nil:
			return nil
		default:
			found = k
		}
	}
	return found
}

// isFor reports whether a key may be used with an algorithm: if the key names one, only
// with that (CWE-347).
func (k *publicKey) isFor(algorithm string) bool {
	if k.Algorithm != "" {
		return k.Algorithm == algorithm
	}
	return slices.Contains(algorithmsOf(k.Key), algorithm)
}

// refresh fetches the keys, unless that was done recently.
func (s *keySet) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetchLocked(time.Now())
}

// fetchLocked starts a fetch of the keys, unless one is running or the last was too
// recently. It returns a channel that is closed at its end; nil if there is none.
func (s *keySet) fetchLocked(now time.Time) <-chan struct{} {
	pause := refetchAfter
	if s.loaded.IsZero() || s.failed {
		pause = retryAfter
	}
	if s.fetching != nil || s.closed || !s.tried.IsZero() && now.Sub(s.tried) < pause {
		return s.fetching
	}
	s.tried, s.fetching = now, make(chan struct{})
	s.running.Go(s.fetch) // ends with the attempt, which has a time limit; close stops it
	return s.fetching
}

func (s *keySet) fetch() {
	keys, err := s.issuer.keys(s.life)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { // when the keys are replaced: verified tokens are looked at without the lock
		close(s.fetching)
		s.fetching = nil
	}()
	s.failed = err != nil
	if s.failed {
		s.log.Warn("keys of the issuer could not be fetched", "known", len(s.keys), "err", err)
		return
	}
	s.replaceLocked(keys)
	s.loaded = time.Now()
}

// replaceLocked replaces the keys. Keys that stay the same keep their verified tokens.
func (s *keySet) replaceLocked(keys []*publicKey) {
	for i, k := range keys {
		for _, had := range s.keys {
			if had.KeyID == k.KeyID && had.Algorithm == k.Algorithm && had.print == k.print {
				keys[i] = had
			}
		}
	}
	for _, had := range s.keys {
		if !slices.Contains(keys, had) {
			had.gone.Store(true)
			s.log.Info("the issuer has withdrawn a key", "kid", had.KeyID)
		}
	}
	s.keys = keys
}

// keys fetches the keys of the issuer.
func (i *issuer) keys(ctx context.Context) ([]*publicKey, error) {
	m, err := i.metadata(ctx)
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := i.get(ctx, m.JWKS, &set); err != nil {
		return nil, err
	}
	var out []*publicKey
	for _, text := range set.Keys[:min(len(set.Keys), maxKeys)] {
		if k := readKey(text); k != nil {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: none of the %d keys is for signatures", m.JWKS, len(set.Keys))
	}
	return out, nil
}

// readKey returns nil for a key that is not for signatures, or of an unknown kind.
func readKey(text []byte) *publicKey {
	k := &publicKey{}
	if k.UnmarshalJSON(text) != nil || !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" || len(algorithmsOf(k.Key)) == 0 {
		return nil
	}
	if rsaKey, ok := k.Key.(*rsa.PublicKey); ok && rsaKey.N.BitLen() < minRSA {
		return nil
	}
	print, err := k.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil
	}
	k.print = string(print)
	return k
}
