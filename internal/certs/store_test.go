package certs

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// served returns the certificate that a handshake would get.
func served(t *testing.T, c *tls.Config) string {
	t.Helper()
	pair, err := c.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(pair.Certificate[0])
}

// A certificate that was replaced is served, once its key is there, too.
func TestStoreRereadsWhatIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := bridgetest.NewAuthority(t, "a")
		cert, key, _ := a.Files(t.TempDir(), bridgetest.Leaf{})
		log := new(bridgetest.Log)
		s, err := Open(Files{Cert: cert, Key: key}, log.Logger())
		if err != nil {
			t.Fatal(err)
		}
		conf := s.Server(false)
		first := served(t, conf)
		end := time.Now().Add(30 * 24 * time.Hour).Truncate(time.Second)
		newCert, newKey := a.Issue(bridgetest.Leaf{NotAfter: end})
		write(t, cert, newCert)
		for range 3 {
			time.Sleep(look)
			if served(t, conf) != first {
				t.Fatal("a certificate without its key is served")
			}
		}
		if n := strings.Count(log.String(), "can't be reread"); n != 1 {
			t.Errorf("%d warnings of the half that was replaced, want 1: %s", n, log)
		}
		write(t, key, newKey)
		time.Sleep(look / 2)
		if served(t, conf) != first {
			t.Errorf("the files were read twice within %v", look)
		}
		time.Sleep(look / 2)
		if served(t, conf) == first {
			t.Error("the new certificate is not served")
		}
		if got := s.NotAfter(); !got.Equal(end) {
			t.Errorf("NotAfter = %v, want %v", got, end)
		}
		if !strings.Contains(log.String(), "certificates were replaced") {
			t.Errorf("the log says nothing of it: %s", log)
		}
		if err := os.Remove(cert); err != nil {
			t.Fatal(err)
		}
		time.Sleep(look)
		if served(t, conf) == first {
			t.Error("the first certificate is back")
		}
		if n := strings.Count(log.String(), "can't be reread"); n != 2 {
			t.Errorf("%d warnings, want 2: %s", n, log)
		}
	})
}

func TestStoreWarnsOfExpiry(t *testing.T) {
	a := bridgetest.NewAuthority(t, "a")
	for _, tt := range []struct {
		left time.Duration
		want bool
	}{{soon + time.Hour, false}, {soon - time.Hour, true}, {-time.Minute, true}} {
		cert, key, _ := a.Files(t.TempDir(), bridgetest.Leaf{NotAfter: time.Now().Add(tt.left)})
		log := new(bridgetest.Log)
		if _, err := Open(Files{Cert: cert, Key: key}, log.Logger()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "expires soon"); got != tt.want {
			t.Errorf("with %v left it warns: %v, want %v", tt.left, got, tt.want)
		}
	}
}

// What can't be used is named by its file; no error shows what is in one.
func TestFilesCheck(t *testing.T) {
	dir := t.TempDir()
	a := bridgetest.NewAuthority(t, "a")
	cert, key, ca := a.Files(dir, bridgetest.Leaf{})
	_, other := a.Issue(bridgetest.Leaf{})
	at := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	for _, tt := range []struct {
		name string
		f    Files
		want string // in the error; empty for none
	}{
		{"nothing", Files{}, ""},
		{"all", Files{cert, key, ca}, ""},
		{"two authorities", Files{CA: at("two.pem", append(a.PEM(), bridgetest.NewAuthority(t, "b").PEM()...))}, ""},
		{"no such file", Files{CA: filepath.Join(dir, "none.pem")}, "none.pem: no such file"},
		{"another's key", Files{Cert: cert, Key: at("other.pem", other)}, "other.pem are no certificate and its key: tls: private key does not match public key"},
		{"a folder", Files{CA: dir}, "is not a regular file"},
		{"no PEM", Files{CA: at("text.pem", []byte("hello"))}, "text.pem: it holds no certificate in PEM"},
		{"a key for an authority", Files{CA: key}, "it holds no certificate in PEM"},
		{"an authority that can't be read", Files{CA: at("bad.pem", append(a.PEM(), badPEM()...))}, "bad.pem: x509: "},
		{"huge", Files{CA: at("huge.pem", make([]byte, maxFile+1))}, "huge.pem is larger than 1048576 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.f.Check()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Check() = %v, want %q", err, tt.want)
			}
		})
	}
}

func badPEM() []byte {
	return []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
}

// Files that can't be read any more fail connections; they are not made without them.
func TestClientOfMissingFilesConnectsToNobody(t *testing.T) {
	c := Files{CA: filepath.Join(t.TempDir(), "ca.pem")}.Client("", nil)
	if c == nil || c.InsecureSkipVerify || c.VerifyConnection(tls.ConnectionState{}) == nil {
		t.Errorf("Client = %+v, want one that refuses every server", c)
	}
	if got := (Files{}).Client("", nil); got != nil {
		t.Errorf("Client of nothing = %v, want nil", got)
	}
}
