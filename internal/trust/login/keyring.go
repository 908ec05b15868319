package login

import (
	"errors"
	"fmt"
	"time"

	system "github.com/zalando/go-keyring"
)

// keyringService is the service under which the logins are in the system's keyring.
const keyringService = "mcpbridge"

// keyringTimeout limits an access, because a locked keyring may ask a person, who may be
// absent.
const keyringTimeout = 30 * time.Second

// A keyring stores secrets by key.
type keyring interface {
	get(key string) ([]byte, error) // ErrNoLogin if there is none
	set(key, secret string) error
	remove(key string) error
}

// systemKeyring is the keyring of the user's system.
type systemKeyring struct{}

func (systemKeyring) get(key string) ([]byte, error) {
	secret, err := bounded(func() (string, error) { return system.Get(keyringService, key) })
	if errors.Is(err, system.ErrNotFound) {
		return nil, ErrNoLogin
	}
	if err != nil {
		return nil, fmt.Errorf("reading the system's keyring: %w", err)
	}
	return []byte(secret), nil
}

func (systemKeyring) set(key, secret string) error {
	_, err := bounded(func() (string, error) { return "", system.Set(keyringService, key, secret) })
	return err
}

func (systemKeyring) remove(key string) error {
	_, err := bounded(func() (string, error) { return "", system.Delete(keyringService, key) })
	if errors.Is(err, system.ErrNotFound) {
		return nil
	}
	return err
}

// bounded limits the wait for f, which has no context, to keyringTimeout. A later result of
// f is dropped; f ends with the keyring's answer, or with the process.
func bounded(f func() (string, error)) (string, error) {
	type answer struct {
		secret string
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		secret, err := f()
		done <- answer{secret, err}
	}()
	select {
	case a := <-done:
		return a.secret, a.err
	case <-time.After(keyringTimeout):
		return "", errors.New("the system's keyring does not answer")
	}
}
