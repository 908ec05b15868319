package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/iotest"
)

// A tape is a connection whose whole input is known.
type tape struct {
	net.Conn
	io.Reader
}

func (t *tape) Read(p []byte) (int, error)  { return t.Reader.Read(p) }
func (t *tape) Write(p []byte) (int, error) { return len(p), nil }
func (t *tape) Close() error                { return nil }

// A player plays tapes to one Transport, with one request and one buffer for all: making
// them would take longer than reading a response.
type player struct {
	t   Transport
	out outgoing
	br  *bufio.Reader
}

func newPlayer(f *testing.F) *player {
	req, err := http.NewRequest("GET", "http://example.com", nil)
	if err != nil {
		f.Fatal(err)
	}
	p := &player{t: Transport{maxHeader: 4 << 10, pool: pool{most: -1}}, out: outgoing{req: req, text: new([]byte)}, br: bufio.NewReader(nil)}
	if err := p.out.fill(nil, false); err != nil {
		f.Fatal(err)
	}
	return p
}

// play returns the response on a tape and its body.
func (p *player) play(rd io.Reader) (*http.Response, string, error) {
	nc := &tape{Reader: rd}
	p.br.Reset(nc)
	resp, err := (&conn{t: &p.t, nc: nc, br: p.br}).exchange(&p.out)
	if err != nil {
		return nil, "", err
	}
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

// maxFuzzed is enough for a header beyond the limit and a body of two buffers.
const maxFuzzed = 16 << 10

// FuzzResponse checks that the result does not depend on how reads are split, that
// net/http reads an accepted response alike, and that the reader never panics.
func FuzzResponse(f *testing.F) {
	for _, text := range []string{
		ok + "Content-Length: 5\r\n\r\nhello",
		ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
		ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\nhello\r\n0\r\n\r\n",
		ok + "\r\nto the end", "HTTP/1.0 200 OK\nA:b\na: c\n\n", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 0\r\n\r\n", "HTTP/1.1 101 x\r\n\r\n",
		ok + "A: b\r\n c\r\n\r\n", ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "",
	} {
		f.Add([]byte(text))
	}
	p := newPlayer(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxFuzzed {
			return
		}
		resp, text, err := p.play(bytes.NewReader(data))
		again, textAgain, errAgain := p.play(iotest.OneByteReader(bytes.NewReader(data)))
		if text != textAgain || (err == nil) != (errAgain == nil) || (resp == nil) != (again == nil) {
			t.Fatalf("%q is %q, %v at once and %q, %v byte by byte", data, text, err, textAgain, errAgain)
		}
		if err != nil {
			return
		}
		compareFuzzed(t, data, resp, text)
	})
}

func compareFuzzed(t *testing.T, data []byte, resp *http.Response, text string) {
	br := bufio.NewReader(bytes.NewReader(data))
	for {
		theirs, err := http.ReadResponse(br, resp.Request)
		if err != nil {
			t.Fatalf("%q was taken, but not by net/http: %v", data, err)
		}
		if theirs.StatusCode < 200 && theirs.StatusCode != 101 {
			continue
		}
		body, err := io.ReadAll(theirs.Body)
		if theirs.StatusCode != resp.StatusCode || string(body) != text && !errors.Is(err, io.ErrUnexpectedEOF) || theirs.ContentLength != resp.ContentLength {
			t.Fatalf("%q = %d %q, net/http: %d %q, %v", data, resp.StatusCode, text, theirs.StatusCode, body, err)
		}
		return
	}
}
