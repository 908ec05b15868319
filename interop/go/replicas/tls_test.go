package replicas

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificates are files: of an authority, and of a certificate of it that all replicas have.
type certificates struct{ cert, key, ca string }

// replicasName is what the certificate is for.
const replicasName = "replicas.example"

// certificates makes them.
func (w *world) certificates(t *testing.T) certificates {
	t.Helper()
	dir := t.TempDir()
	c := certificates{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "replicas"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: replicasName}, DNSNames: []string{replicasName},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	keys := make([]*ecdsa.PrivateKey, 2)
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	write := func(file, kind string, data []byte, err error) {
		if err == nil {
			err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []*x509.Certificate{root, leaf} {
		one.NotBefore, one.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(90*24*time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &keys[0].PublicKey, keys[0])
	write(c.ca, "CERTIFICATE", der, err)
	der, err = x509.CreateCertificate(rand.Reader, leaf, root, &keys[1].PublicKey, keys[0])
	write(c.cert, "CERTIFICATE", der, err)
	der, err = x509.MarshalPKCS8PrivateKey(keys[1])
	write(c.key, "PRIVATE KEY", der, err)
	return c
}

// lines are those of the block replicas, with further members as in ", plaintext: true".
func (c certificates) lines(more string) string {
	return fmt.Sprintf("  tls: {cert: %q, key: %q, client_ca: %q, server_name: %s%s}", c.cert, c.key, c.ca, replicasName, more)
}

// TestTLSInTwoSteps introduces TLS between replicas, and removes it again, each step one replica
// after the other: sessions go on in every state, and no request fails.
func TestTLSInTwoSteps(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine, warn: true, config: "drain_delay: 3s\ndrain: 15s"})
		w.balancer.follow(t)
		cert := w.certificates(t)
		var sessions []*lasting
		for i := range size(20, companySize) {
			sessions = append(sessions, w.last(t, w.door(), w.modern.item(i%20)))
		}
		calls := w.pour(t, size(20, 100))
		for range faultRounds(t) {
			for _, step := range size([]string{"accept both", "refuse the old"}, []string{"accept both", "refuse the old", "accept both", "without"}) {
				w.roll(t, map[string]string{
					"accept both":    cert.lines(", plaintext: true"),
					"refuse the old": cert.lines(""),
				}[step])
				t.Logf("all replicas are at the step %q", step)
			}
		}
		t.Logf("%d calls", calls())
		moved := 0
		for _, s := range sessions {
			moved += s.end(t)
		}
		t.Logf("%d sessions, whose streams were opened anew %d times", len(sessions), moved)
		for _, r := range w.replicas {
			if text := r.tail(1 << 20); strings.Contains(text, "client sessions end with this replica") {
				t.Errorf("sessions have ended with %s", r.name)
			}
		}
	})
}

// roll has the replicas serve with other lines of the block replicas, one after the other.
func (w *world) roll(t *testing.T, lines string) {
	t.Helper()
	for _, r := range w.replicas {
		r.stop(time.Minute)
		r.edit = func(config string) string { return strings.Replace(config, "  advertise:", lines+"\n  advertise:", 1) }
		w.configure(r)
		r.start()
		w.wantMembers(w.replicas...)
	}
}
