package login

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// assertionLife is how long an assertion is valid.
const assertionLife = time.Minute

// A signer signs assertions, with which a client authenticates.
//
// Spec: RFC 7523, 2.2, 3.
type signer struct {
	key        crypto.Signer
	id         string // of the key; may be empty
	algorithms []jose.SignatureAlgorithm
}

// newSigner reads a private key: RSA with at least 2048 bits, P-256, P-384 or Ed25519, as
// PKCS #8, PKCS #1 or SEC 1.
func newSigner(text, id string) (*signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the private key is not a PEM text")
	}
	key, err := parseKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	s := &signer{key: key, id: id}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if k.N.BitLen() < 2048 {
			return nil, errors.New("the private key has less than 2048 bits")
		}
		s.algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.PS256}
	case *ecdsa.PrivateKey:
		s.algorithms = map[int][]jose.SignatureAlgorithm{256: {jose.ES256}, 384: {jose.ES384}}[k.Curve.Params().BitSize]
	case ed25519.PrivateKey:
		s.algorithms = []jose.SignatureAlgorithm{jose.EdDSA}
	}
	if s.algorithms == nil {
		return nil, errors.New("the private key is of a kind that is not supported; use RSA, P-256, P-384 or Ed25519")
	}
	return s, nil
}

func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		if s, ok := key.(crypto.Signer); ok {
			return s, nil
		}
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	return nil, errors.New("the private key can't be read; use an unencrypted one in PKCS #8, PKCS #1 or SEC 1")
}

// assertion returns a new assertion for one authorization server. Its audience is the
// issuer, whose name was checked, so that no other server can get an assertion for it.
func (s *signer) assertion(client string, as *authServer) (string, error) {
	at := slices.IndexFunc(s.algorithms, func(a jose.SignatureAlgorithm) bool {
		return len(as.SigningAlgorithms) == 0 || slices.Contains(as.SigningAlgorithms, string(a))
	})
	if at < 0 {
		return "", fmt.Errorf("the authorization server accepts no algorithm that the private key can sign with; it accepts %s", shown(fmt.Sprint(as.SigningAlgorithms)))
	}
	o := (&jose.SignerOptions{}).WithType("JWT")
	if s.id != "" {
		o = o.WithHeader("kid", s.id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: s.algorithms[at], Key: s.key}, o)
	if err != nil {
		return "", errors.New("the private key can't sign")
	}
	now := time.Now()
	return jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: client, Subject: client, Audience: jwt.Audience{as.Issuer}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(assertionLife)),
	}).Serialize()
}
