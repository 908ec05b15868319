package http1

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// errHeaderTooLong makes the connection unusable, because the end of the header is
// unknown.
var errHeaderTooLong = errors.New("http1: the response's header is too long")

func malformed(what string) error { return fmt.Errorf("http1: malformed response: %s", what) }

// A head is a response's status line and header.
type head struct {
	minor  int // of HTTP/1.x
	code   int
	status string // code and reason
	header http.Header
}

// readHead reads one head of at most limit bytes. It returns io.EOF only if the
// connection ends before the first byte.
func readHead(br *bufio.Reader, limit int) (head, error) {
	text, err := readBlock(br, limit)
	if err != nil {
		return head{}, err
	}
	return parseHead(text)
}

// readBlock reads lines up to the first empty one, and returns the lines before it.
func readBlock(br *bufio.Reader, limit int) (string, error) {
	var space [1 << 10]byte
	text, line := space[:0], 0
	for {
		part, err := br.ReadSlice('\n')
		if len(text)+len(part) > limit {
			return "", errHeaderTooLong
		}
		text = append(text, part...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(text) > 0:
			return "", io.ErrUnexpectedEOF
		case err != nil:
			return "", err
		}
		if rest := text[line:]; len(rest) == 1 || len(rest) == 2 && rest[0] == '\r' {
			return string(text[:line]), nil
		}
		line = len(text)
	}
}

// parseHead parses the lines of a head, including their line ends.
//
// Spec: RFC 9112, 4 and 5. It refuses folded lines, as a gateway may.
func parseHead(text string) (h head, err error) {
	line, rest := cutLine(text)
	if err := h.parseStatus(line); err != nil {
		return h, err
	}
	n := strings.Count(rest, "\n")
	h.header = make(http.Header, n)
	values := make([]string, 0, n)
	for rest != "" {
		line, rest = cutLine(rest)
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !isToken(name) || !isValue(value) {
			return h, malformed("a header line")
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if before := h.header[name]; before != nil {
			h.header[name] = append(before, value)
			continue
		}
		values = append(values, value)
		h.header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	return h, nil
}

func cutLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

func (h *head) parseStatus(line string) error {
	switch {
	case strings.HasPrefix(line, "HTTP/1.1 "):
		h.minor = 1
	case !strings.HasPrefix(line, "HTTP/1.0 "):
		return malformed("it does not begin with HTTP/1.1")
	}
	h.status = line[len("HTTP/1.1 "):]
	code, _, _ := strings.Cut(h.status, " ")
	n, err := strconv.ParseUint(code, 10, 16)
	if err != nil || len(code) != 3 || n < 100 || !isValue(h.status) {
		return malformed("the status code")
	}
	h.code = int(n)
	return nil
}

// A framing tells where a body ends.
type framing struct {
	chunked bool
	length  int64 // of a body that is not chunked; -1: it ends with the connection
	closes  bool  // the connection can't be reused
}

// frame returns the framing of the body, and removes connection-specific fields from the
// header, as net/http does. The request's method is not HEAD.
//
// Spec: RFC 9112, 6.3 and 9.3.
func (h *head) frame() (framing, error) {
	closes := hasToken(h.header["Connection"], "close")
	if closes {
		delete(h.header, "Connection")
	}
	f := framing{length: -1, closes: closes || h.minor == 0}
	length, err := contentLength(h.header["Content-Length"])
	if err != nil {
		return f, err
	}
	coding := h.header["Transfer-Encoding"]
	if h.minor == 0 {
		coding = nil // HTTP/1.0 has no Transfer-Encoding; as in net/http
	}
	delete(h.header, "Transfer-Encoding")
	delete(h.header, "Trailer")
	switch {
	case h.code == http.StatusNoContent || h.code == http.StatusNotModified:
		f.length = 0
	case coding == nil:
		f.length = length
	case len(coding) == 1 && strings.EqualFold(coding[0], "chunked"):
		f.chunked = true
		if length >= 0 { // other programs may take the other length. CWE-444
			f.closes = true
			delete(h.header, "Content-Length")
		}
	default:
		return f, fmt.Errorf("http1: unsupported Transfer-Encoding %q", coding)
	}
	f.closes = f.closes || f.length < 0 && !f.chunked
	return f, nil
}

// contentLength returns -1 if there is no Content-Length.
func contentLength(values []string) (int64, error) {
	if len(values) == 0 {
		return -1, nil
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return 0, malformed("two lengths")
		}
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil {
		return 0, malformed("its length")
	}
	return int64(n), nil
}

func hasToken(values []string, token string) bool {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.Trim(part, " \t"), token) {
				return true
			}
		}
	}
	return false
}
