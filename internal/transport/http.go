package transport

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// NewHTTP returns an http.Transport for many concurrent requests to one origin. connect
// bounds the time to connect. It does not request compression, which costs more than it
// saves on loopback and in data centres. secure is for https; nil means the authorities
// that the system trusts.
func NewHTTP(connect time.Duration, secure *tls.Config) *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	t.TLSClientConfig = secure.Clone() // net/http adds to it; nil stays nil
	t.DialContext = Dialer(connect).DialContext
	t.TLSHandshakeTimeout = connect
	t.OnProxyConnectResponse = CheckProxy
	t.DisableCompression = true
	t.MaxIdleConnsPerHost = 256
	// Shorter than the idle time-outs of servers (Node: 5 s): if a connection ends during
	// a request, the request may have taken effect, and not every request can be sent
	// again.
	t.IdleConnTimeout = 4 * time.Second
	return t
}

// Unsent reports whether a RoundTrip failed with err before it had a connection, so that
// nothing was sent.
func Unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") ||
		errors.As(err, new(*net.DNSError)) || errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(*ProxyError))
}

// Cause removes from the error of a RoundTrip the URL, which may contain a secret, and
// the local port, which differs each time.
func Cause(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	if proxy, ok := errors.AsType[*ProxyError](err); ok {
		return proxy
	}
	if ne, ok := errors.AsType[*net.OpError](err); ok {
		op := *ne
		op.Source = nil
		return &op
	}
	return err
}

// WantsSlash reports whether resp is a redirect to the same URL with a slash at its end,
// the most common redirect. The target of another redirect may be secret.
func WantsSlash(from *url.URL, resp *http.Response) bool {
	if resp.StatusCode < 300 || resp.StatusCode > 399 {
		return false
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	return err == nil && to.Host == from.Host && to.Path == from.Path+"/"
}

// RedirectTarget returns where a redirect of from leads: the URL without user, query and fragment,
// which may be secret. It is empty if resp is no redirect, or says no other URL.
func RedirectTarget(from *url.URL, resp *http.Response) string {
	if resp.StatusCode < 300 || resp.StatusCode > 399 || resp.Header.Get("Location") == "" {
		return ""
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return ""
	}
	return (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String()
}

// ReadAll reads all of src, which is one message, into a buffer from [GetBuffer]. size is
// the expected size. It returns a [*TooLongError] if there are more than limit bytes. The
// caller owns the buffer, even on errors.
func ReadAll(src io.Reader, size, limit int) ([]byte, error) {
	// One byte more, so that the end is detected without growing the buffer.
	buf := GetBuffer(min(size, limit) + 1)
	return readInto(buf, src, limit, func(size int) ([]byte, error) { return GetBuffer(size), nil })
}

// readInto is ReadAll into an empty buffer, or larger ones, which larger returns.
func readInto(buf []byte, src io.Reader, limit int, larger func(size int) ([]byte, error)) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			more, err := larger(2 * cap(buf))
			if err != nil {
				return buf, err
			}
			more = append(more, buf...)
			PutBuffer(buf)
			buf = more
		}
		n, err := src.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return buf, &TooLongError{Limit: limit}
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}
