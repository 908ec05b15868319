package requeststate

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

// handleBytes is how much of a handle is random: nobody guesses 128 bits.
const handleBytes = 16

// NewHandle returns the name of something that this instance holds for a client. It begins as a
// requestState does, so that it is found out which instance has it, and is at most 64 characters
// long, all of which fit into a header. It says nothing of what it names.
func (s *Sealer) NewHandle() string {
	var random [handleBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	return version + "." + s.instance + "." + base64.RawURLEncoding.EncodeToString(random[:])
}

// CheckHandle returns nil for a text that NewHandle may have returned. The error is
// ErrOtherInstance if another instance seems to have made it, and ErrInvalid otherwise.
func (s *Sealer) CheckHandle(text string) error {
	instance, _, random := split(text)
	switch {
	case len(random) != handleBytes || len(instance) != len(s.instance) || strings.TrimRight(instance, base32) != "":
		return ErrInvalid
	case instance != s.instance:
		return ErrOtherInstance
	}
	return nil
}

// base32 are the letters and digits of instances.
const base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
