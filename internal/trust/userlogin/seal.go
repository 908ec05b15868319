package userlogin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
)

// A purpose has a key of its own, so that nothing that is sealed for one is taken for another.
type purpose string

const (
	forLogins  purpose = "login"
	forClients purpose = "client"
	forLinks   purpose = "link"
	forVisits  purpose = "visit"
)

// MinKey is the shortest secret that keys are derived from, in bytes.
const MinKey = 16

var errSealed = errors.New("it was sealed with another key, for something else, or was altered")

// A sealer encrypts, so that nobody else reads or makes what is sealed. Safe for concurrent use.
type sealer struct {
	keys atomic.Pointer[map[purpose][]cipher.AEAD] // the first of a purpose seals, all open
}

// replace derives the keys from other secrets. If it fails, nothing has changed.
func (s *sealer) replace(secrets []string) error {
	if len(secrets) == 0 {
		return errors.New("there is no key to keep logins with: set login_keys, or state_keys")
	}
	keys := make(map[purpose][]cipher.AEAD)
	for _, secret := range secrets {
		if len(secret) < MinKey {
			return fmt.Errorf("a key of logins is shorter than %d characters", MinKey)
		}
		for _, p := range []purpose{forLogins, forClients, forLinks, forVisits} {
			aead, err := derive(secret, p)
			if err != nil {
				return err
			}
			keys[p] = append(keys[p], aead)
		}
	}
	s.keys.Store(&keys)
	return nil
}

// CheckKeys reports what is wrong with keys; nil for nothing.
func CheckKeys(secrets []string) error { return new(sealer).replace(secrets) }

func derive(secret string, p purpose) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "mcpbridge user logins: "+string(p), 32)
	if err != nil {
		return nil, fmt.Errorf("deriving a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts a text, which opens only with the same name.
func (s *sealer) seal(p purpose, name string, plain []byte) []byte {
	return (*s.keys.Load())[p][0].Seal(nil, nil, plain, []byte(name))
}

// open decrypts what seal has returned with one of the keys.
func (s *sealer) open(p purpose, name string, sealed []byte) ([]byte, error) {
	for _, key := range (*s.keys.Load())[p] {
		if plain, err := key.Open(nil, nil, sealed, []byte(name)); err == nil {
			return plain, nil
		}
	}
	return nil, errSealed
}
