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

// NewHTTP returns net/http's transport for one origin with many requests at a
// time. connect bounds the way to the server. It does not follow redirects. Bodies
// pass as they are: unpacking them costs more than loopback and data centres save.
func NewHTTP(connect time.Duration) *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	t.DialContext = (&net.Dialer{Timeout: connect, KeepAlive: 15 * time.Second}).DialContext
	t.TLSHandshakeTimeout = connect
	t.OnProxyConnectResponse = CheckProxy
	t.DisableCompression = true
	t.MaxIdleConnsPerHost = 256
	// Shorter than what servers grant (Node: 5 s): a request that meets the end of
	// its connection may have run, and not every request can be sent again.
	t.IdleConnTimeout = 4 * time.Second
	return t
}

// Unsent reports whether a RoundTrip that failed with err had no connection to
// send anything on.
func Unsent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var proxy *ProxyError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") ||
		errors.As(err, &dns) || errors.As(err, &cert) || errors.As(err, &record) || errors.As(err, &proxy)
}

// Cause strips from a RoundTrip's error what repeats the URL, which may hold a secret,
// and the port of this side, which makes each error another.
func Cause(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	var proxy *ProxyError
	if errors.As(err, &proxy) {
		return proxy
	}
	var ne *net.OpError
	if errors.As(err, &ne) {
		op := *ne
		op.Source = nil
		return &op
	}
	return err
}

// WantsSlash reports whether resp is a redirect from a URL to the same with a slash at
// its end: the usual reason for one. Others may lead to what is a secret.
func WantsSlash(from *url.URL, resp *http.Response) bool {
	if resp.StatusCode < 300 || resp.StatusCode > 399 {
		return false
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	return err == nil && to.Host == from.Host && to.Path == from.Path+"/"
}

// ReadAll reads a message that takes all of src into a buffer of [GetBuffer], size
// being what is expected. It returns a [*TooLongError] beyond limit bytes. The
// buffer is the caller's, on failure too.
func ReadAll(src io.Reader, size, limit int) ([]byte, error) {
	// One byte more: the end is seen without growing.
	buf := GetBuffer(min(size, limit) + 1)
	for {
		if len(buf) == cap(buf) {
			more := append(GetBuffer(2*cap(buf)), buf...)
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
