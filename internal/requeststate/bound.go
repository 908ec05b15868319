package requeststate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// tagMark stands between a server's own requestState and the tag. No tag contains it.
const tagMark = "~"

// Bind returns a server's own requestState with a tag of binding at its end, which says
// whose it is: to the server, all clients are one.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Server Requirements.
func (s *Sealer) Bind(state, binding string) string {
	return state + tagMark + tagOf(s.keys.Load().tags[0], state, binding)
}

// Unbind returns the server's own requestState from a result of Bind, if it has a tag of
// the same binding and one of the keys. Otherwise the error is ErrInvalid.
func (s *Sealer) Unbind(text, binding string) (string, error) {
	at := strings.LastIndex(text, tagMark)
	if at < 0 {
		return "", ErrInvalid
	}
	state, tag := text[:at], []byte(text[at+len(tagMark):])
	for _, key := range s.keys.Load().tags {
		if hmac.Equal(tag, []byte(tagOf(key, state, binding))) {
			return state, nil
		}
	}
	return "", ErrInvalid
}

// tagOf returns the tag. The digest of the binding has a fixed length, so that it can't be
// confused with a part of the state.
func tagOf(key []byte, state, binding string) string {
	whose := sha256.Sum256([]byte(binding))
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write(whose[:]) // writing to a hash never fails
	_, _ = mac.Write([]byte(state))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// tagKeyOf derives the key of tags from a secret.
func tagKeyOf(secret string) []byte {
	key := sha256.Sum256([]byte("mcpbridge requestState of a server\x00" + secret))
	return key[:]
}
