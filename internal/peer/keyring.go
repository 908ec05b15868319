package peer

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"hash"
	"net/http"
	"strconv"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// minKey is the length of the shortest key, in characters.
const minKey = 16

// A keyring signs and checks envelopes. The first key signs, all are accepted. It is
// read-only.
type keyring struct{ keys []*key }

// A key makes codes with a secret.
type key struct{ hashes sync.Pool }

func newKeyring(secrets []string) (*keyring, error) {
	if len(secrets) == 0 {
		return nil, errors.New("replicas need a key that all of them have; set replicas.keys")
	}
	ring := new(keyring)
	for _, secret := range secrets {
		if len(secret) < minKey {
			return nil, errors.New("a key of replicas.keys is shorter than 16 characters")
		}
		derived := sha256.Sum256([]byte("mcpbridge peer\x00" + secret))
		k := new(key)
		k.hashes.New = func() any { return hmac.New(sha256.New, derived[:]) }
		ring.keys = append(ring.keys, k)
	}
	return ring, nil
}

func (ring *keyring) sign(text string, r *http.Request) [sha256.Size]byte {
	return ring.keys[0].code(text, r)
}

// verify reports whether code is that of one of the keys.
func (ring *keyring) verify(code []byte, text string, r *http.Request) bool {
	for _, k := range ring.keys {
		if want := k.code(text, r); hmac.Equal(code, want[:]) {
			return true
		}
	}
	return false
}

// signedHeaders are the headers of a request that decide what it does, and to whose session.
// Other headers need another version of the envelope.
var signedHeaders = [...]string{spec.HeaderSession, spec.HeaderLastEventID, spec.HeaderProtocolVersion, "Authorization", "Content-Type"}

// code returns the code of an envelope and its request. Lengths separate the parts, so that
// none can be taken for another.
func (k *key) code(text string, r *http.Request) (sum [sha256.Size]byte) {
	h := k.hashes.Get().(hash.Hash)
	defer k.hashes.Put(h)
	h.Reset()
	var space [2 << 10]byte
	b := appendPart(space[:0], text)
	b = appendPart(b, r.Method)
	b = appendPart(b, r.URL.EscapedPath())
	b = appendPart(b, r.URL.RawQuery)
	for _, name := range signedHeaders {
		values := r.Header[name]
		b = append(strconv.AppendInt(b, int64(len(values)), 10), '*')
		for _, v := range values {
			b = appendPart(b, v)
		}
	}
	_, _ = h.Write(b) // writing to a hash never fails
	h.Sum(sum[:0])
	return sum
}

func appendPart(dst []byte, part string) []byte {
	dst = append(strconv.AppendInt(dst, int64(len(part)), 10), ':')
	return append(dst, part...)
}
