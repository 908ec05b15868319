package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
)

// A ProxyError reports that a proxy did not connect to the server.
type ProxyError struct {
	Proxy string // host:port
	Err   error
}

func (e *ProxyError) Error() string { return "through proxy " + e.Proxy + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *ProxyError) Unwrap() error { return e.Err }

// CheckProxy is for [http.Transport.OnProxyConnectResponse]. Without it, the error for a
// refusal by a proxy has only the text of the status.
func CheckProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{proxy.Host, fmt.Errorf("it answered CONNECT with HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))}
}

// A KindError reports that a server responded with another media type than those of MCP.
type KindError struct {
	Kind string // the media type
}

func (e *KindError) Error() string { return fmt.Sprintf("it answered with Content-Type %q", e.Kind) }

// IsRefusedCertificate reports whether a connection failed because one side does not accept
// the certificate of the other, or another thing that is agreed upon in a TLS handshake: to
// try again is of no use before somebody has changed something.
func IsRefusedCertificate(err error) bool {
	var op *net.OpError
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, &op) && op.Op == "remote error"
}

// Advice returns what to do about an error of connecting to a server, or "" if it does
// not know the error.
func Advice(err error) string {
	var proxy *ProxyError
	var name x509.HostnameError
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, new(*KindError)):
		return "is it an MCP server, and the path of its URL right?"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "trust who issued its certificate: name the authority's file with --cacert, or in the server's tls.ca in a file, add it to the certificates of this machine, or on Linux name it in SSL_CERT_FILE"
	case errors.As(err, &name):
		return "give the URL with a name that its certificate is for"
	case errors.As(err, &cert):
		return "its certificate needs renewing, or the clock of this machine setting"
	case errors.As(err, new(tls.RecordHeaderError)):
		return "it does not speak TLS there: is it http:// (or ws://)?"
	case errors.As(err, &op) && op.Op == "remote error":
		return "it ended the TLS connection: if it wants a client certificate, name one in the server's tls.cert and tls.key"
	case errors.As(err, &op) && op.Op == "proxyconnect", errors.As(err, &proxy):
		return "check the proxy in HTTPS_PROXY and HTTP_PROXY, or name the server's host in NO_PROXY"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "is the host's name right?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: check that it runs, and the port"
	}
	return ""
}
