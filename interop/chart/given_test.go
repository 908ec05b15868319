//go:build linux

package chart

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"
)

// certificate is a Secret of the type kubernetes.io/tls as cert-manager makes it, for all
// names that the chart has.
var certificate = sync.OnceValues(func() (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mcpbridge"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"release-mcpbridge.tools.svc", "release-mcpbridge-headless.tools.svc", "peers.example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	pair := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return map[string][]byte{"tls.crt": pair, "ca.crt": pair, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})}, nil
})

// given are the Secrets which the files below ci say are there already.
func given(t *testing.T) map[string]map[string][]byte {
	t.Helper()
	pair, err := certificate()
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("Vb7qWs0ZtR2gKd8fq2mz0xLp4JnYc6HuEoT9aXi3")
	return map[string]map[string][]byte{
		"mcpbridge-keys":  {"peer-key": key, "peer-key-2": key[1:], "admin-token": key, "metrics-token": key[2:]},
		"all-keys":        {"peer-key": key, "peer-key-2": key[1:], "admin-token": key, "metrics-token": key[2:], "nats-password": key},
		"mcpbridge-files": {"docs-token": key},
		"redis-password":  {"REDIS_PASSWORD": key},
		"redis-passwords": {"REDIS_PASSWORD": key, "SENTINEL_PASSWORD": key},
		"redis-tls":       pair, "nats-tls": pair, "mcpbridge-tls": pair, "release-mcpbridge-cert": pair, "company-ca": pair, "mcpbridge-peer-tls": pair, "peer-tls": pair,
		"nats-credentials": {"nats.creds": []byte("-----BEGIN NATS USER JWT-----\n")},
	}
}
