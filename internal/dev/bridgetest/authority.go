package bridgetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority issues certificates, for servers and clients alike.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority that nobody trusts yet.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t}
	of := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	a.cert, a.key = a.sign(of, of, nil)
	return a
}

// sign makes a key, and a certificate for it; a nil signer is that key itself.
func (a *Authority) sign(of, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if signer == nil {
		signer = key
	}
	if of.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, of, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// A Leaf says what a certificate is of. The zero value is of 127.0.0.1 and localhost, for
// another hour.
type Leaf struct {
	Names    []string // instead of 127.0.0.1 and localhost
	URIs     []string // such as a SPIFFE id
	NotAfter time.Time
}

// Issue returns a certificate and its key, in PEM.
func (a *Authority) Issue(l Leaf) (cert, key []byte) {
	a.t.Helper()
	of := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "test"},
		NotBefore: a.cert.NotBefore, NotAfter: l.NotAfter, DNSNames: l.Names,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if of.NotAfter.IsZero() {
		of.NotAfter = time.Now().Add(time.Hour)
	}
	if l.Names == nil {
		of.DNSNames, of.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	for _, text := range l.URIs {
		u, err := url.Parse(text)
		if err != nil {
			a.t.Fatal(err)
		}
		of.URIs = append(of.URIs, u)
	}
	c, k := a.sign(of, a.cert, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return toPEM("CERTIFICATE", c.Raw), toPEM("PRIVATE KEY", der)
}

func toPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// PEM returns the authority's own certificate.
func (a *Authority) PEM() []byte { return toPEM("CERTIFICATE", a.cert.Raw) }

// Pool returns the authorities as what is trusted.
func Pool(authorities ...*Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range authorities {
		pool.AddCert(a.cert)
	}
	return pool
}

// Pair returns a certificate that a connection can show.
func (a *Authority) Pair(l Leaf) tls.Certificate {
	a.t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(l))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// Files writes a certificate, its key and the authority's own certificate into a folder,
// and returns their paths.
func (a *Authority) Files(dir string, l Leaf) (cert, key, ca string) {
	a.t.Helper()
	c, k := a.Issue(l)
	cert, key, ca = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")
	for path, text := range map[string][]byte{cert: c, key: k, ca: a.PEM()} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return cert, key, ca
}
