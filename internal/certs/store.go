package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// look is the minimum time between two checks of the files.
	look = time.Second
	// soon is how long before it expires there is a warning about a certificate.
	soon = 7 * 24 * time.Hour
)

// A Store has the content of Files. It is safe for concurrent use.
type Store struct {
	files Files
	log   *slog.Logger

	used    atomic.Pointer[material]
	refused atomic.Pointer[string] // why the files can't be used; nil if they can
	looked  atomic.Int64           // when the files were last checked, in Unix nanoseconds
}

// Open reads the files. log, which may be nil, gets messages about later changes.
func Open(f Files, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m, err := f.load()
	if err != nil {
		return nil, err
	}
	s := &Store{files: f, log: log}
	s.use(m)
	s.looked.Store(time.Now().UnixNano())
	return s, nil
}

// NotAfter returns when the own certificate expires; zero without one.
func (s *Store) NotAfter() time.Time { return s.current().notAfter() }

func (s *Store) use(m *material) {
	s.used.Store(m)
	if end := m.notAfter(); !end.IsZero() && time.Until(end) < soon {
		s.log.Warn("certificate expires soon, or has expired; replace its files", "cert", s.files.Cert, "not_after", end)
	}
}

// current returns the content of the files, and rereads them if it is time.
func (s *Store) current() *material {
	last, now := s.looked.Load(), time.Now().UnixNano()
	if now-last >= int64(look) && s.looked.CompareAndSwap(last, now) {
		s.reread()
	}
	return s.used.Load()
}

// reread runs on one goroutine at a time. If it takes longer than look, another may run it,
// too; both read the same.
func (s *Store) reread() {
	t, err := s.files.read()
	if err != nil {
		s.refuse(err)
		return
	}
	if t.equal(&s.used.Load().texts) {
		s.refused.Store(nil)
		return
	}
	m, err := s.files.parse(t)
	if err != nil {
		s.refuse(err)
		return
	}
	s.refused.Store(nil)
	s.use(m)
	s.log.Info("certificates were replaced and are in use", "cert", s.files.Cert, "ca", s.files.CA, "not_after", m.notAfter())
}

// refuse logs why the files can't be used, once for each reason.
func (s *Store) refuse(err error) {
	why := err.Error()
	if before := s.refused.Swap(&why); before == nil || *before != why {
		s.log.Warn("certificates can't be reread; the last ones stay in use", "err", err)
	}
}

// Server returns the configuration of a listener, for HTTP/1.1 and HTTP/2. With a CA,
// clients are asked for a certificate of one of the authorities; required says that clients
// without one are refused.
//
// With a CA there are no session tickets: a resumed connection would have the certificate
// of an earlier one, whose authority may have been removed since.
func (s *Store) Server(required bool) *tls.Config {
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.current().pair, nil },
	}
	if s.files.CA == "" {
		return c
	}
	c.SessionTicketsDisabled = true
	c.ClientAuth = tls.VerifyClientCertIfGiven
	if required {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c.ClientCAs = s.used.Load().pool
	each := c.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		own := each.Clone()
		own.ClientCAs = s.current().pool
		return own, nil
	}
	return c
}

// Client returns the configuration of connections to a server. The server's certificate
// must be issued by one of the authorities, or without a CA by one that the system trusts,
// for serverName, or if that is empty for the host of the URL. The own certificate is sent
// if the server asks for one. The CA is reread if there is a serverName.
func (s *Store) Client(serverName string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName, RootCAs: s.used.Load().pool}
	if s.files.Cert != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return s.current().pair, nil
		}
	}
	if s.files.CA != "" && serverName != "" {
		// RootCAs would be those of today for as long as c is used.
		c.InsecureSkipVerify = true
		c.VerifyConnection = func(state tls.ConnectionState) error { return s.verify(state.PeerCertificates, serverName) }
	}
	return c
}

// verify verifies a server's certificate as package tls does, with the authorities that the
// files have.
func (s *Store) verify(shown []*x509.Certificate, name string) error {
	o := x509.VerifyOptions{Roots: s.current().pool, DNSName: name, Intermediates: x509.NewCertPool()}
	if len(shown) == 0 || o.Roots == nil { // neither happens: fail closed
		return errors.New("tls: the server's certificate can't be verified")
	}
	for _, c := range shown[1:] {
		o.Intermediates.AddCert(c)
	}
	if _, err := shown[0].Verify(o); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: shown, Err: err}
	}
	return nil
}

// Trusts reports whether the client certificate of a connection would still be accepted: it
// has not expired, and its authority has not been removed. Without a certificate it returns
// true.
func (s *Store) Trusts(state *tls.ConnectionState) bool {
	if s.files.CA == "" || state == nil || len(state.PeerCertificates) == 0 {
		return true
	}
	m, now := s.current(), time.Now()
	return slices.ContainsFunc(state.VerifiedChains, func(chain []*x509.Certificate) bool { return m.trusts(chain, now) })
}

// Guard refuses requests on connections whose client certificate is not accepted any more,
// and closes the connections.
//
// Spec: RFC 9110, 15.5.20: the client may repeat the request on another connection.
func (s *Store) Guard(next http.Handler) http.Handler {
	if s.files.CA == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Trusts(r.TLS) {
			w.Header().Set("Connection", "close")
			http.Error(w, "the client certificate of this connection has expired, or its authority is not trusted any more; connect again with another", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Client returns [Store.Client] of the files, or nil if there are no files and no name. If
// the files can't be read, each connection fails with the reason.
func (f Files) Client(serverName string, log *slog.Logger) *tls.Config {
	if f == (Files{}) && serverName == "" {
		return nil
	}
	s, err := Open(f, log)
	if err != nil {
		return &tls.Config{MinVersion: tls.VersionTLS12, VerifyConnection: func(tls.ConnectionState) error { return err }}
	}
	return s.Client(serverName)
}
