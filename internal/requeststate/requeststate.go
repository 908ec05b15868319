// Package requeststate encrypts and checks requestStates. The requestStates of calls that
// wait in this process are sealed, so that clients can neither read nor forge them; those
// of servers get a tag, which says to whom they belong.
//
// The package does not know which calls there are, or what a binding consists of.
package requeststate

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// version begins every requestState, so that a later format can be distinguished.
const version = "1"

// A State is the content of a requestState: the round of the call for which a retry has the
// responses, and the request that may be retried.
type State struct {
	Call    uint64 // the parked call's id in this instance
	Round   uint32
	Expires time.Time // whole seconds
	Binding [sha256.Size]byte
}

// Errors of [Sealer.Open].
var (
	ErrInvalid       = errors.New("requestState is not valid for this request")
	ErrOtherInstance = errors.New("requestState is of another instance, or of one before a restart")
)

// A Sealer seals and opens requestStates: a client can neither read nor forge them. It is
// safe for concurrent use.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Security Considerations.
type Sealer struct {
	instance string
	keys     atomic.Pointer[keyring]
}

// A keyring has the keys derived from the secrets. It is read-only.
type keyring struct {
	random bool          // no secret was configured
	seal   []cipher.AEAD // the first seals, all open
	tags   [][]byte      // the first binds, all unbind
}

// NewSealer returns a Sealer. Each key is a secret of any length; without keys it uses a
// random one, which lasts as long as the process.
func NewSealer(keys ...string) (*Sealer, error) { return NewSealerOf(rand.Text()[:8], keys...) }

// NewSealerOf returns a Sealer whose requestStates name an instance, of eight letters and
// digits, which holds the calls.
func NewSealerOf(instance string, keys ...string) (*Sealer, error) {
	s := &Sealer{instance: instance}
	if err := s.Replace(keys...); err != nil {
		return nil, err
	}
	return s, nil
}

// Instance returns the instance that holds the calls.
func (s *Sealer) Instance() string { return s.instance }

// Replace sets the keys for further requestStates. Without keys, a random key that was used
// before stays. If it fails, nothing has changed.
func (s *Sealer) Replace(keys ...string) error {
	random := len(keys) == 0
	if former := s.keys.Load(); random && former != nil && former.random {
		return nil
	}
	if random {
		keys = []string{rand.Text()}
	}
	ring := &keyring{random: random}
	for _, k := range keys {
		aead, err := newAEAD(k)
		if err != nil {
			return err
		}
		ring.seal = append(ring.seal, aead)
		ring.tags = append(ring.tags, tagKeyOf(k))
	}
	s.keys.Store(ring)
	return nil
}

// newAEAD derives the sealing key from a secret.
func newAEAD(key string) (cipher.AEAD, error) {
	if len(key) < 16 {
		return nil, errors.New("a key of state_keys is shorter than 16 characters")
	}
	secret := sha256.Sum256([]byte("mcpbridge requestState\x00" + key))
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return aead, nil
}

// Seal returns st as a requestState.
func (s *Sealer) Seal(st State) string {
	var plain []byte
	plain = binary.BigEndian.AppendUint64(plain, st.Call)
	plain = binary.BigEndian.AppendUint32(plain, st.Round)
	plain = binary.BigEndian.AppendUint64(plain, uint64(st.Expires.Unix()))
	plain = append(plain, st.Binding[:]...)
	prefix := version + "." + s.instance + "."
	sealed := s.keys.Load().seal[0].Seal(nil, nil, plain, []byte(prefix))
	return prefix + base64.RawURLEncoding.EncodeToString(sealed)
}

// Open decrypts a requestState that Seal has returned with one of the keys. It does not
// check the State. There is only one valid text for a state. The error is ErrOtherInstance
// if another instance seems to have sealed it, and ErrInvalid otherwise.
func (s *Sealer) Open(text string) (State, error) {
	instance, body, sealed := split(text)
	if sealed == nil || len(instance) != len(s.instance) {
		return State{}, ErrInvalid
	}
	if instance != s.instance {
		return State{}, ErrOtherInstance
	}
	for _, key := range s.keys.Load().seal {
		plain, err := key.Open(nil, nil, sealed, []byte(text[:len(text)-len(body)]))
		if err == nil && len(plain) == 8+4+8+sha256.Size {
			return State{
				Call:    binary.BigEndian.Uint64(plain),
				Round:   binary.BigEndian.Uint32(plain[8:]),
				Expires: time.Unix(int64(binary.BigEndian.Uint64(plain[12:])), 0),
				Binding: [sha256.Size]byte(plain[20:]),
			}, nil
		}
	}
	return State{}, ErrInvalid
}

// IsSealed reports whether a requestState has the form of those that Seal returns. None that
// Bind returns has it.
func IsSealed(text string) bool {
	_, _, sealed := split(text)
	return sealed != nil
}

// split returns the instance of a requestState, and the rest with its text; sealed is nil if it
// has not the form of those that Seal returns.
func split(text string) (instance, body string, sealed []byte) {
	v, rest, _ := strings.Cut(text, ".")
	instance, body, ok := strings.Cut(rest, ".")
	sealed, err := base64.RawURLEncoding.DecodeString(body)
	if v != version || !ok || err != nil || base64.RawURLEncoding.EncodeToString(sealed) != body {
		return "", "", nil
	}
	return instance, body, sealed
}
