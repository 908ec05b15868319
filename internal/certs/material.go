package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// maxFile limits a file, in bytes.
const maxFile = 1 << 20

// Files are paths of PEM files. Cert and Key are both given, or none.
type Files struct {
	Cert string // certificate chain, beginning with the own certificate
	Key  string // private key of the own certificate
	CA   string // certificates of authorities
}

// Check returns an error that names a file, if the files can't be used.
func (f Files) Check() error {
	_, err := f.load()
	return err
}

// A material is the content of the files at one time.
type material struct {
	texts texts
	pair  *tls.Certificate    // nil without Cert
	pool  *x509.CertPool      // nil without CA
	roots map[string]struct{} // DER of the certificates in pool
}

// texts are the texts of Files.
type texts struct{ cert, key, ca []byte }

func (t *texts) equal(o *texts) bool {
	return bytes.Equal(t.cert, o.cert) && bytes.Equal(t.key, o.key) && bytes.Equal(t.ca, o.ca)
}

func (f Files) load() (*material, error) {
	t, err := f.read()
	if err != nil {
		return nil, err
	}
	return f.parse(t)
}

func (f Files) read() (t texts, err error) {
	for _, from := range []struct {
		path string
		to   *[]byte
	}{{f.Cert, &t.cert}, {f.Key, &t.key}, {f.CA, &t.ca}} {
		if from.path == "" {
			continue
		}
		if *from.to, err = readFile(from.path); err != nil {
			return t, err
		}
	}
	return t, nil
}

// readFile reads a regular file. Others, such as a named pipe, could block a handshake.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return text, err
}

func (f Files) parse(t texts) (*material, error) {
	m := &material{texts: t}
	if f.Cert != "" {
		pair, err := tls.X509KeyPair(t.cert, t.key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s are no certificate and its key: %w", f.Cert, f.Key, err)
		}
		m.pair = &pair
	}
	if f.CA == "" {
		return m, nil
	}
	authorities, err := parseAuthorities(t.ca)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.CA, err)
	}
	m.pool, m.roots = x509.NewCertPool(), make(map[string]struct{})
	for _, c := range authorities {
		m.pool.AddCert(c)
		m.roots[string(c.Raw)] = struct{}{}
	}
	return m, nil
}

// parseAuthorities reads all certificates of a PEM file. x509's AppendCertsFromPEM skips
// those that it can't parse, and clients of a skipped authority would be refused without a
// reason.
func parseAuthorities(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		switch {
		case block == nil && len(all) == 0:
			return nil, errors.New("it holds no certificate in PEM")
		case block == nil:
			return all, nil
		case block.Type != "CERTIFICATE":
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
}

// notAfter returns when the own certificate expires; zero if there is none.
func (m *material) notAfter() time.Time {
	if m.pair == nil || m.pair.Leaf == nil {
		return time.Time{}
	}
	return m.pair.Leaf.NotAfter
}

// trusts reports whether a chain is valid at a time, and issued by one of m's authorities.
func (m *material) trusts(chain []*x509.Certificate, now time.Time) bool {
	for _, c := range chain {
		if now.Before(c.NotBefore) || now.After(c.NotAfter) {
			return false
		}
	}
	if len(chain) == 0 {
		return false
	}
	_, known := m.roots[string(chain[len(chain)-1].Raw)]
	return known
}
