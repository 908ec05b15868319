package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// tokenPrefix begins the tokens that are made here.
const tokenPrefix = "mcpb_"

// GenerateToken returns a new token of 256 random bits, and its SHA-256 in hexadecimal. The
// token has a prefix by which scanners for leaked credentials find it.
func GenerateToken() (token, digest string) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	sum := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(sum[:])
}
