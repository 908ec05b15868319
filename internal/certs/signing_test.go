package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
)

// keyText returns a key as PKCS #8.
func keyText(t *testing.T, key crypto.Signer, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// A key signs by the algorithms of its kind; one that can't is told why.
func TestSigningKey(t *testing.T) {
	curve := func(c elliptic.Curve) string {
		key, err := ecdsa.GenerateKey(c, rand.Reader)
		return keyText(t, key, err)
	}
	of := func(bits int) string {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		return keyText(t, key, err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	for _, tt := range []struct{ name, text, want, fault string }{
		{"RSA", of(2048), "RS256 PS256", ""},
		{"P-256", curve(elliptic.P256()), "ES256", ""},
		{"P-384", curve(elliptic.P384()), "ES384", ""},
		{"Ed25519", keyText(t, edwards, err), "EdDSA", ""},
		{"short RSA", of(1024), "", "less than 2048 bits"},
		{"P-521", curve(elliptic.P521()), "", "a kind that is not supported"},
		{"encrypted", string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})), "", "use an unencrypted one"},
		{"none", "", "", "not a PEM text"},
	} {
		key, algorithms, err := SigningKey(tt.text)
		if tt.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%s: SigningKey = %v, want an error with %q", tt.name, err, tt.fault)
			}
			continue
		}
		if err != nil || key == nil || strings.Join(algorithms, " ") != tt.want {
			t.Errorf("%s: SigningKey = %v, %v, want %s", tt.name, algorithms, err, tt.want)
		}
	}
}
