package http1

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const ok = "HTTP/1.1 200 OK\r\n"

// Responses that are read as net/http reads them, and whether the connection is reused.
func TestFraming(t *testing.T) {
	for _, tt := range []struct {
		name, text, body string
		again            bool
		ends             bool // the server closes the connection
	}{
		{name: "length", text: ok + "Content-Length: 5\r\n\r\nhello", body: "hello", again: true},
		{name: "no bytes", text: ok + "Content-Length: 0\r\n\r\n", again: true},
		{name: "the same length twice", text: ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", body: "hello", again: true},
		{name: "longer than the buffer", text: ok + "Content-Length: 65536\r\n\r\n" + long(65536), body: long(65536), again: true},
		{name: "chunks", text: ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", body: "hello", again: true},
		{name: "chunks in capitals", text: ok + "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", body: "hello", again: true},
		{name: "chunks and a trailer", text: ok + "Trailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: b\r\n\r\n", body: "hello", again: true},
		{name: "chunks and a length", text: ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", body: "hello"},
		{name: "to the end", text: ok + "\r\nhello", body: "hello", ends: true},
		{name: "Connection: close", text: ok + "Connection: keep-alive, Close\r\nContent-Length: 5\r\n\r\nhello", body: "hello"},
		{name: "HTTP/1.0", text: "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", body: "hello"},
		{name: "204", text: "HTTP/1.1 204 No Content\r\n\r\n", again: true},
		{name: "304 with a length", text: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", again: true},
		{name: "interim responses", text: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok + "Content-Length: 5\r\n\r\nhello", body: "hello", again: true},
		{name: "no reason", text: "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", again: true, body: "hello"},
		{name: "bare line feeds", text: "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", body: "hello", again: true},
		{name: "fields twice and in any case", text: ok + "x-a: 1\r\nX-A:\t2 \r\nX-Empty:\r\ncontent-length: 5\r\n\r\nhello", body: "hello", again: true},
		{name: "header longer than the buffer", text: ok + "X-A: " + long(20<<10) + "\r\nContent-Length: 5\r\n\r\nhello", body: "hello", again: true},
		{name: "more than was asked for", text: ok + "Content-Length: 5\r\n\r\nhello" + ok, body: "hello"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScripted(t, func(n int, c net.Conn, br *bufio.Reader) {
				if tt.ends {
					_, _ = readRequest(br)
					_, _ = io.WriteString(c, tt.text)
					return
				}
				answers(tt.text)(n, c, br)
			})
			tr := newTransport(t, nil)
			theirs := &http.Transport{DisableCompression: true}
			defer theirs.CloseIdleConnections()
			want, _, err := fetch(theirs, newRequest(t.Context(), "GET", s.url, nil))
			if err != nil {
				t.Fatalf("net/http: %v", err)
			}
			before := s.count()
			for range 2 {
				got, text, err := fetch(tr, newRequest(t.Context(), "GET", s.url, nil))
				if err != nil || text != tt.body {
					t.Fatalf("body = %.50q, %v, want %.50q", text, err, tt.body)
				}
				compare(t, got, want)
			}
			if again := s.count() == before+1; again != tt.again {
				t.Errorf("connection used again = %v, want %v", again, tt.again)
			}
		})
	}
}

// compare compares two responses to the same request.
func compare(t *testing.T, got, want *http.Response) {
	t.Helper()
	type facts struct {
		Status, Proto      string
		Code, Major, Minor int
		Length             int64
		Coding             []string
		Header             http.Header
		HasRequest         bool
	}
	of := func(r *http.Response) facts {
		h := r.Header.Clone()
		if len(h["Content-Length"]) > 1 {
			h["Content-Length"] = h["Content-Length"][:1]
		}
		return facts{r.Status, r.Proto, r.StatusCode, r.ProtoMajor, r.ProtoMinor, r.ContentLength,
			r.TransferEncoding, h, r.Request != nil}
	}
	if g, w := of(got), of(want); !reflect.DeepEqual(g, w) {
		t.Errorf("response = %+v\nnet/http: %+v", g, w)
	}
}

// A malformed response is an error, and closes its connection.
func TestMalformed(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "without a response"},
		{"another protocol", "SSH-2.0-OpenSSH_9.6\r\n\r\n", "does not begin with HTTP/1.1"},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", "does not begin with HTTP/1.1"},
		{"code of letters", "HTTP/1.1 abc OK\r\n\r\n", "status code"},
		{"code of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "status code"},
		{"code with a sign", "HTTP/1.1 +20 OK\r\n\r\n", "status code"},
		{"code below 100", "HTTP/1.1 099 OK\r\n\r\n", "status code"},
		{"folded line", ok + "X-A: b\r\n c\r\n\r\n", "header line"},
		{"no colon", ok + "hello\r\n\r\n", "header line"},
		{"no name", ok + ": hello\r\n\r\n", "header line"},
		{"space before the colon", ok + "Content-Length : 5\r\n\r\nhello", "header line"},
		{"control character", ok + "X-A: \x00\r\n\r\n", "header line"},
		{"carriage return in a value", ok + "X-A: b\rX-B: c\r\n\r\n", "header line"},
		{"two lengths", ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "two lengths"},
		{"list of lengths", ok + "Content-Length: 5, 5\r\n\r\nhello", "its length"},
		{"signed length", ok + "Content-Length: +5\r\n\r\nhello", "its length"},
		{"length beyond int64", ok + "Content-Length: 9223372036854775808\r\n\r\nhello", "its length"},
		{"unknown coding", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", "unsupported Transfer-Encoding"},
		{"two codings", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "unsupported Transfer-Encoding"},
		{"unasked upgrade", "HTTP/1.1 101 Switching Protocols\r\n\r\n", "switches protocols"},
		{"interim responses without end", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100), "interim"},
		{"header without end", ok + strings.Repeat("X-A: b\r\n", 100_000), "too long"},
		{"line without end", ok + "X-A: " + long(1<<20), "too long"},
		{"end in the status line", "HTTP/1.1 20", "unexpected EOF"},
		{"end in the header", ok + "X-A: b\r\n", "unexpected EOF"},
		{"end after an interim response", "HTTP/1.1 100 Continue\r\n\r\n", "unexpected EOF"},
		{"end in the body", ok + "Content-Length: 5\r\n\r\nhell", "unexpected EOF"},
		{"end between chunks", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "unexpected EOF"},
		{"end before the trailer's", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", "unexpected EOF"},
		{"chunk of no length", ok + "Transfer-Encoding: chunked\r\n\r\nhello\r\n\r\n", "chunk"},
		{"trailer without end", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X-A: b\r\n", 100_000), "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ended := make(chan struct{}, 1)
			s := newScripted(t, func(_ int, c net.Conn, br *bufio.Reader) {
				_, _ = readRequest(br)
				_, _ = io.WriteString(c, tt.text)
				_ = c.(*net.TCPConn).CloseWrite() // the client may have closed
				awaitEnd(br)
				ended <- struct{}{}
			})
			_, text, err := fetch(newTransport(t, nil), newRequest(t.Context(), "POST", s.url, []byte("{}")))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("RoundTrip = %.50q, %v; want an error with %q", text, err, tt.want)
			}
			<-ended
		})
	}
}
