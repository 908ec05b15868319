// Package requeststate answers one question: is the requestState that a client sends with
// its answers the one that it was given, for the call that it was given for? Those of calls
// that wait here are sealed, those of servers get a tag.
//
// The package refuses to know which calls there are, and what a binding is made of.
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
	"time"
)

// version begins every requestState, so that a later form can be told from
// this one.
const version = "1"

// A State says which round of which call a retry answers, and for which request it may.
// It is what a requestState holds.
type State struct {
	Call    uint64 // names the parked call in this instance
	Round   uint32
	Expires time.Time // whole seconds
	Binding [sha256.Size]byte
}

// Errors of [Sealer.Open].
var (
	ErrInvalid       = errors.New("requestState is not valid for this request")
	ErrOtherInstance = errors.New("requestState is of another instance, or of one before a restart")
)

// A Sealer makes and reads requestStates: sealed, so that a client can neither
// read nor make one. Safe for concurrent use.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Security Considerations.
type Sealer struct {
	instance string
	keys     []cipher.AEAD // the first seals, all open
	tagKeys  [][]byte      // the first binds, all unbind
}

// NewSealer returns a Sealer. Each key is a secret of any length; with none, a
// random one lasts as long as the process.
func NewSealer(keys ...string) (*Sealer, error) {
	if len(keys) == 0 {
		keys = []string{rand.Text()}
	}
	s := &Sealer{instance: rand.Text()[:8]}
	for _, k := range keys {
		if len(k) < 16 {
			return nil, errors.New("a key of state_keys is shorter than 16 characters")
		}
		secret := sha256.Sum256([]byte("mcpbridge requestState\x00" + k))
		block, err := aes.NewCipher(secret[:])
		if err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
		s.keys = append(s.keys, aead)
		s.tagKeys = append(s.tagKeys, tagKeyOf(k))
	}
	return s, nil
}

// Seal returns st as a requestState.
func (s *Sealer) Seal(st State) string {
	var plain []byte
	plain = binary.BigEndian.AppendUint64(plain, st.Call)
	plain = binary.BigEndian.AppendUint32(plain, st.Round)
	plain = binary.BigEndian.AppendUint64(plain, uint64(st.Expires.Unix()))
	plain = append(plain, st.Binding[:]...)
	prefix := version + "." + s.instance + "."
	sealed := s.keys[0].Seal(nil, nil, plain, []byte(prefix))
	return prefix + base64.RawURLEncoding.EncodeToString(sealed)
}

// Open reads a requestState that Seal made with one of the keys. It does not judge what
// is in it. A state has one spelling, that of Seal. The error is ErrOtherInstance for one
// that another instance made, by its own account, and ErrInvalid for anything else.
func (s *Sealer) Open(text string) (State, error) {
	v, rest, _ := strings.Cut(text, ".")
	instance, body, ok := strings.Cut(rest, ".")
	sealed, err := base64.RawURLEncoding.DecodeString(body)
	if v != version || !ok || err != nil || base64.RawURLEncoding.EncodeToString(sealed) != body || len(instance) != len(s.instance) {
		return State{}, ErrInvalid
	}
	if instance != s.instance {
		return State{}, ErrOtherInstance
	}
	for _, key := range s.keys {
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
