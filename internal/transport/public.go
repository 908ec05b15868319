package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// A Reason is the cause of an error, with the text of [Cause] for logs and that of
// [Public] for clients.
type Reason struct{ Err error }

func (r Reason) Error() string { return Cause(r.Err).Error() }

// Unwrap returns the error.
func (r Reason) Unwrap() error { return r.Err }

// Public returns the text for clients.
func (r Reason) Public() string { return Public(r.Err) }

// Public describes err in general terms for clients: without addresses and paths of this
// side, and without output of a server's process. An error can provide the text by a
// method Public.
func Public(err error) string {
	if e, ok := err.(interface{ Public() string }); ok {
		return e.Public()
	}
	if text, inner := general(err); inner != nil {
		return text + Public(inner)
	} else if text != "" {
		return text
	}
	text, within := err.Error(), unwrapped(err)
	if len(within) == 0 {
		return withoutPlaces(text)
	}
	for _, inner := range within {
		text = strings.Replace(text, inner.Error(), Public(inner), 1)
	}
	return text
}

var (
	addresses = regexp.MustCompile(`\b[a-z][a-z0-9+]*://[^\s"']+|\b[\w-]+(?:\.[\w-]+)*:\d{1,5}\b|\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-fA-F:.]+(?:%\w+)?\](?::\d+)?`)
	paths     = regexp.MustCompile(`(^|[\s"'=(])(?:/|[A-Za-z]:\\)[^\s"':;,)]+`)
)

// withoutPlaces hides addresses and paths in any text.
func withoutPlaces(text string) string {
	return paths.ReplaceAllString(addresses.ReplaceAllString(text, redact.Hidden), "${1}"+redact.Hidden)
}

// general returns the text that replaces an error whose type contains an address or a
// path, and the error of its chain that follows the text. Both are zero for other types.
func general(err error) (text string, inner error) {
	switch e := err.(type) {
	case *url.Error, *net.OpError, *os.PathError, *os.SyscallError, *exec.Error, *tls.CertificateVerificationError:
		return "", errors.Unwrap(err)
	case *ProxyError:
		return "through a proxy: ", e.Err
	case *net.DNSError, *net.AddrError:
		return "the name of its host can't be looked up", nil
	case x509.HostnameError:
		return "its certificate is for another name", nil
	case x509.UnknownAuthorityError:
		return "its certificate is signed by an unknown authority", nil
	case x509.CertificateInvalidError:
		return "its certificate is not valid", nil
	}
	return "", nil
}

func unwrapped(err error) []error {
	if inner := errors.Unwrap(err); inner != nil {
		return []error{inner}
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return nil
}
