package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// atOnce is the largest body, in bytes, that is written before the response is read.
	// The socket buffers of any two kernels hold that much. A larger body is written
	// while the response is read, because the server may respond before it has read the
	// body.
	atOnce = 32 << 10

	userAgent = "Go-http-client/1.1" // as http.Transport sends
)

// ErrNotSent is wrapped by the error of a request of which no byte was sent.
var ErrNotSent = errors.New("nothing was sent")

// An unsentError is why the context of a request has ended of which no byte was sent.
type unsentError struct{ cause error }

func (e *unsentError) Error() string { return e.cause.Error() }

// Unwrap returns ErrNotSent and the cause.
func (e *unsentError) Unwrap() []error { return []error{ErrNotSent, e.cause} }

// serves reports whether the Transport sends req itself.
func (t *Transport) serves(req *http.Request) bool {
	u := req.URL
	switch {
	case !canPeek, u == nil || u.Host == "" || !isPlainHost(u.Host):
		return false
	case u.Scheme != "http" && (u.Scheme != "https" || !t.speaksHTTP1(addrOf(u))):
		return false
	case req.Method == http.MethodConnect, req.Method == http.MethodHead, !isToken(req.Method):
		return false
	case len(req.TransferEncoding) > 0, len(req.Trailer) > 0, hasBody(req) && req.ContentLength <= 0:
		return false
	case req.Header == nil, req.Header["Expect"] != nil, req.Header["Connection"] != nil, req.Header["Upgrade"] != nil:
		return false
	}
	if t.other.Proxy == nil {
		return true
	}
	proxy, err := t.other.Proxy(req)
	return proxy == nil && err == nil
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// isPlainHost reports whether host can be sent as it is: without characters that need
// encoding, and without an IPv6 zone, which must not be sent to a server.
func isPlainHost(host string) bool {
	for _, b := range []byte(host) {
		if b <= ' ' || b >= 0x7f || b == '%' {
			return false
		}
	}
	return true
}

// An outgoing is a request to be sent.
type outgoing struct {
	req *http.Request
	// text is the header, followed by a small body. It comes from buffers.
	text *[]byte
	rest io.ReadCloser // a body that is not in text; nil if none
}

var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 4<<10)) }}

// fill appends the header to text, with further fields, and reads and closes a small body.
func (out *outgoing) fill(fields []Field, close bool) (err error) {
	req := out.req
	if *out.text, err = appendHead((*out.text)[:0], req, fields, close); err != nil {
		return err
	}
	if !hasBody(req) {
		return nil
	}
	if req.ContentLength > atOnce {
		out.rest = req.Body
		return nil
	}
	defer closeBody(req)
	head, n := len(*out.text), int(req.ContentLength)
	*out.text = slices.Grow(*out.text, n)[:head+n]
	if _, err := io.ReadFull(req.Body, (*out.text)[head:]); err != nil {
		return fmt.Errorf("http1: reading the request's body of %d bytes: %w", n, err)
	}
	return nil
}

// addr returns the address to dial.
func (out *outgoing) addr() string { return addrOf(out.req.URL) }

// addrOf returns the host and port of an http or https URL.
func addrOf(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	port := ":80"
	if u.Scheme == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(u.Host, ":") + port
}

// mayRepeat reports whether the request may be sent again after an exchange on a reused
// connection failed with err.
func (out *outgoing) mayRepeat(err error) bool {
	if out.req.Context().Err() != nil {
		return false
	}
	if errors.Is(err, ErrNotSent) {
		return true
	}
	return errors.Is(err, errNoResponse) && isSafe(out.req.Method)
}

// isSafe reports whether method is safe.
//
// Spec: RFC 9110, 9.2.1.
func isSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// rewind makes the request ready to be sent again.
func (out *outgoing) rewind() error {
	if out.rest == nil {
		return nil
	}
	if out.req.GetBody == nil {
		return errors.New("http1: the body can't be read again")
	}
	var err error
	out.rest, err = out.req.GetBody()
	return err
}

// drop closes the body of a request that can't be sent.
func (out *outgoing) drop() {
	if out.rest != nil {
		_ = out.rest.Close() // the caller gets the error of dialling
	}
}

// done returns the buffer to the pool.
func (out *outgoing) done() {
	if cap(*out.text) <= 2*atOnce {
		buffers.Put(out.text)
	}
	out.text = nil
}

// appendHead appends the request line and the header.
//
// Spec: RFC 9112, 3 and 5.
func appendHead(dst []byte, req *http.Request, fields []Field, close bool) ([]byte, error) {
	target := req.URL.RequestURI()
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	if strings.ContainsAny(target, " \r\n\t\x00") || !isPlainHost(host) {
		return dst, errors.New("http1: request URL or host with characters that can't be sent")
	}
	dst = append(append(append(dst, req.Method...), ' '), target...)
	dst = append(append(append(dst, " HTTP/1.1\r\nHost: "...), host...), "\r\n"...)
	if _, ok := req.Header["User-Agent"]; !ok {
		dst = append(dst, "User-Agent: "+userAgent+"\r\n"...)
	}
	switch {
	case hasBody(req):
		dst = appendLength(dst, req.ContentLength)
	case req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch:
		dst = appendLength(dst, 0)
	}
	if close || req.Close {
		dst = append(dst, "Connection: close\r\n"...)
	}
	dst, err := appendHeader(dst, req.Header, fields)
	for _, f := range fields {
		if err == nil {
			dst, err = appendField(dst, f.Name, f.Value)
		}
	}
	return append(dst, "\r\n"...), err
}

func appendLength(dst []byte, n int64) []byte {
	return append(strconv.AppendInt(append(dst, "Content-Length: "...), n, 10), "\r\n"...)
}

// appendHeader appends the fields of h, sorted by name, except those that appendHead
// writes, and those in place of which others are sent.
func appendHeader(dst []byte, h http.Header, others []Field) (_ []byte, err error) {
	var few [16]string
	names := few[:0]
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		}
		if isAmong(others, name) {
			continue
		}
		for _, v := range h[name] {
			if name == "User-Agent" && v == "" {
				continue // the caller wants none
			}
			if dst, err = appendField(dst, name, v); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}

func appendField(dst []byte, name, value string) ([]byte, error) {
	switch {
	case !isToken(name):
		return dst, fmt.Errorf("http1: invalid header name %q", name)
	case !isValue(value):
		return dst, fmt.Errorf("http1: invalid value of header %s", name) // it may be a secret
	}
	return append(append(append(append(dst, name...), ": "...), strings.Trim(value, " \t")...), "\r\n"...), nil
}

// isToken reports whether s is a token.
//
// Spec: RFC 9110, 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !tokens[s[i]] {
			return false
		}
	}
	return s != ""
}

var tokens = func() (t [256]bool) {
	for b := range byte(0x7f) {
		t[b] = b > ' ' && bytes.IndexByte([]byte(`"(),/:;<=>?@[\]{}`), b) < 0
	}
	return t
}()

// isValue reports whether s can be a field's value. A line break would begin another
// field.
//
// Spec: RFC 9110, 5.5. CWE-113.
func isValue(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}
