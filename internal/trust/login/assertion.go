package login

import (
	"crypto"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcpbridge/mcpbridge/internal/certs"
)

// assertionLife is how long an assertion is valid.
const assertionLife = time.Minute

// A signer signs assertions, with which a client authenticates.
//
// Spec: RFC 7523, 2.2, 3.
type signer struct {
	key        crypto.Signer
	id         string // of the key; may be empty
	algorithms []string
}

// newSigner reads a private key, as [certs.SigningKey] does.
func newSigner(text, id string) (*signer, error) {
	key, algorithms, err := certs.SigningKey(text)
	if err != nil {
		return nil, err
	}
	return &signer{key, id, algorithms}, nil
}

// assertion returns a new assertion for one authorization server. Its audience is the
// issuer, whose name was checked, so that no other server can get an assertion for it.
func (s *signer) assertion(client string, as *authServer) (string, error) {
	at := slices.IndexFunc(s.algorithms, func(a string) bool {
		return len(as.SigningAlgorithms) == 0 || slices.Contains(as.SigningAlgorithms, a)
	})
	if at < 0 {
		return "", fmt.Errorf("the authorization server accepts no algorithm that the private key can sign with; it accepts %s", shown(fmt.Sprint(as.SigningAlgorithms)))
	}
	o := (&jose.SignerOptions{}).WithType("JWT")
	if s.id != "" {
		o = o.WithHeader("kid", s.id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(s.algorithms[at]), Key: s.key}, o)
	if err != nil {
		return "", errors.New("the private key can't sign")
	}
	now := time.Now()
	return jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: client, Subject: client, Audience: jwt.Audience{as.Issuer}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(assertionLife)),
	}).Serialize()
}
