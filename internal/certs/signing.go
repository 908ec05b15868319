package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// SigningKey reads a private key that signs tokens, and returns the JWS algorithms of which it is.
// It may be RSA with at least 2048 bits, P-256, P-384 or Ed25519, as PKCS #8, PKCS #1 or SEC 1.
//
// Spec: RFC 7518, 3.1; RFC 8037, 3.1.
func SigningKey(text string) (crypto.Signer, []string, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, nil, errors.New("the private key is not a PEM text; use one that begins with -----BEGIN")
	}
	key, err := parseKey(block.Bytes)
	if err != nil {
		return nil, nil, err
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if k.N.BitLen() < 2048 {
			return nil, nil, errors.New("the private key has less than 2048 bits; make a longer one")
		}
		return key, []string{"RS256", "PS256"}, nil
	case *ecdsa.PrivateKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return key, []string{"ES256"}, nil
		case 384:
			return key, []string{"ES384"}, nil
		}
	case ed25519.PrivateKey:
		return key, []string{"EdDSA"}, nil
	}
	return nil, nil, errors.New("the private key is of a kind that is not supported; use RSA, P-256, P-384 or Ed25519")
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
