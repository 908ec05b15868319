package downstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A streamServer is an HTTP server whose every response is a stream on a connection that
// was taken over, if it can be.
type streamServer struct {
	*httptest.Server
	streams  Streams
	taken    chan bool     // whether the connection was taken over
	returned chan struct{} // gets one for each serve that has returned
}

func newStreamServer(t *testing.T, serve func(context.Context, *stream)) *streamServer {
	ss := &streamServer{taken: make(chan bool, 10), returned: make(chan struct{}, 10)}
	ss.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Of-The-Handler", "kept")
		taken := true
		ss.streams.Serve(w, r, time.Minute, func(ctx context.Context, res *Response) func() {
			s, ok := res.w.(*stream)
			if !ok {
				taken = false
				_, _ = io.WriteString(w, "not taken")
				return nil
			}
			return func() {
				defer func() { ss.returned <- struct{}{} }()
				serve(ctx, s)
			}
		})
		ss.taken <- taken
	}))
	ss.EnableHTTP2 = true
	t.Cleanup(func() {
		ss.Close()
		if err := ss.streams.Wait(context.Background()); err != nil {
			t.Errorf("Wait() = %v", err)
		}
	})
	return ss
}

func (ss *streamServer) dial(t *testing.T) *net.TCPConn {
	c, err := net.Dial("tcp", ss.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// What writes a stream has its turn when that is asked for, and when the client has left; it is over once
// it says so. So it is over HTTP/1.1 and HTTP/2.
func TestStreamsTakeTurns(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var streams Streams
		opened := make(chan *Response, 1)
		turned, left := make(chan struct{}, 10), make(chan error, 1)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			streams.ServeTurns(w, r, time.Minute, func(ctx context.Context, res *Response) Turn {
				opened <- res
				return func() bool {
					if ctx.Err() != nil {
						left <- res.Cause(ctx)
						return true
					}
					_ = res.Event("message", "", []byte("x"))
					turned <- struct{}{}
					return false
				}
			})
		}))
		s.EnableHTTP2 = http2
		s.StartTLS()
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan *http.Response, 1)
		go func() { // ends with the header
			res, err := s.Client().Do(req)
			if err != nil {
				t.Errorf("HTTP/2 %v: %v", http2, err)
			}
			asked <- res
		}()
		res := <-opened
		for range 3 {
			res.Turns().Send()
			<-turned
		}
		got := <-asked
		leave()
		_ = got.Body.Close()
		if why := <-left; why == nil || len(turned) > 0 || (got.ProtoMajor == 2) != http2 {
			t.Errorf("HTTP/%d: left because of %v, with %d more turns", got.ProtoMajor, why, len(turned))
		}
		s.Close()
		if err := streams.Wait(t.Context()); err != nil {
			t.Errorf("Wait() = %v", err)
		}
	}
}

// A stream gives back all places of its request as it begins, also where its handler stays.
func TestStreamsGiveBackPlaces(t *testing.T) {
	var left []string
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r, first := Placed(r, func() { left = append(left, "first") })
	r, second := Placed(r, func() { left = append(left, "second") })
	var here *Streams
	here.Serve(httptest.NewRecorder(), r, time.Minute, func(context.Context, *Response) func() {
		if len(left) > 0 {
			t.Errorf("%q were given back before the stream is open", left)
		}
		return func() {
			if len(left) != 2 {
				t.Errorf("%q were given back when the stream is open, want both", left)
			}
		}
	})
	second()
	first()
	if len(left) != 2 {
		t.Errorf("%q were given back, want each once", left)
	}
}

const streamRequest = "GET / HTTP/1.1\r\nHost: test\r\n\r\n"

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func TestStreamIsAResponse(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	ss := newStreamServer(t, func(_ context.Context, s *stream) {
		for _, part := range []string{"one", "", long} {
			if n, err := io.WriteString(s, part); n != len(part) || err != nil {
				t.Errorf("Write() = %d, %v", n, err)
			}
		}
		if err := errors.Join(s.end(), s.end()); err != nil {
			t.Errorf("end() = %v", err)
		}
		if _, err := io.WriteString(s, "late"); err == nil {
			t.Error("Write after end succeeded")
		}
	})
	ss.Start()
	res, err := ss.Client().Get(ss.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != "one"+long {
		t.Errorf("body = %d bytes, %v", len(body), err)
	}
	if !res.Close || len(res.TransferEncoding) != 1 || res.Header.Get("X-Of-The-Handler") != "kept" || res.Header.Get("Date") == "" {
		t.Errorf("response = %+v", res)
	}
	if !<-ss.taken {
		t.Error("the connection was not taken over")
	}
}

// A handler returns, and net/http lets go, while its stream is open.
func TestStreamOutlivesItsHandler(t *testing.T) {
	more := make(chan struct{})
	ss := newStreamServer(t, func(_ context.Context, s *stream) {
		_, _ = io.WriteString(s, "one\n")
		<-more
		_, _ = io.WriteString(s, "two\n")
		_ = s.end()
	})
	ss.Start()
	res, err := ss.Client().Get(ss.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body := bufio.NewReader(res.Body)
	if line, err := body.ReadString('\n'); line != "one\n" || err != nil {
		t.Errorf("first = %q, %v", line, err)
	}
	<-ss.taken
	if err := ss.Config.Shutdown(t.Context()); err != nil { // it waits for handlers
		t.Errorf("Shutdown() = %v", err)
	}
	close(more)
	if rest, err := io.ReadAll(body); string(rest) != "two\n" || err != nil {
		t.Errorf("rest = %q, %v", rest, err)
	}
}

func TestStreamEndsWithItsClient(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn) error{
		"closes": (*net.TCPConn).Close,
		"half":   (*net.TCPConn).CloseWrite, // as net/http takes it
		"resets": func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) },
		"after more": func(c *net.TCPConn) error {
			_, err := c.Write(make([]byte, maxStray))
			return errors.Join(err, c.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			cause := make(chan error, 1)
			ss := newStreamServer(t, func(ctx context.Context, s *stream) {
				_, _ = io.WriteString(s, "one")
				<-ctx.Done()
				cause <- context.Cause(ctx)
			})
			ss.Start()
			c := ss.dial(t)
			write(t, c, streamRequest)
			<-ss.taken
			if err := leave(c); err != nil {
				t.Fatal(err)
			}
			if err := <-cause; !errors.Is(err, ErrClientLeft) {
				t.Errorf("cause = %v", err)
			}
			if err := ss.streams.Wait(t.Context()); err != nil {
				t.Errorf("Wait() = %v", err)
			}
		})
	}
}

// What a client sends after its request must not make a reset of the stream's end.
func TestStreamEndArrivesWhole(t *testing.T) {
	ss := newStreamServer(t, func(_ context.Context, s *stream) {
		_, _ = io.WriteString(s, strings.Repeat("x", 50_000))
		_ = s.end()
	})
	ss.Start()
	c := ss.dial(t)
	write(t, c, streamRequest+streamRequest)
	<-ss.returned
	// Nobody serves these, nor answers them with a reset before the end is read. In one
	// piece they are sent before the server stops waiting for the client to end.
	write(t, c, strings.Repeat(streamRequest, 5_000))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); len(body) != 50_000 || err != nil {
		t.Errorf("body = %d bytes, %v", len(body), err)
	}
	<-ss.taken
	if len(ss.taken) > 0 {
		t.Error("another request was served on the connection")
	}
	begin := time.Now() // and the connection does not stay for a client that keeps it
	if err := ss.streams.Wait(t.Context()); err != nil || time.Since(begin) > 20*lingerTime {
		t.Errorf("Wait() = %v after %v", err, time.Since(begin))
	}
}

func TestStreamThatBreaksOffIsNotWhole(t *testing.T) {
	ss := newStreamServer(t, func(_ context.Context, s *stream) { _, _ = io.WriteString(s, "one") })
	ss.Start()
	res, err := ss.Client().Get(ss.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if body, err := io.ReadAll(res.Body); string(body) != "one" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("body = %q, %v; want an unexpected end", body, err)
	}
}

// A client that goes on sending on the connection of its stream must not be read
// for as long as it likes: its connection ends (CWE-770).
func TestStrayBytesEndTheStream(t *testing.T) {
	cause := make(chan error, 1)
	ss := newStreamServer(t, func(ctx context.Context, s *stream) {
		_, _ = io.WriteString(s, "one")
		<-ctx.Done()
		cause <- context.Cause(ctx)
	})
	ss.Start()
	c := ss.dial(t)
	write(t, c, streamRequest)
	<-ss.taken
	piece := make([]byte, 4<<10)
	for sent := 0; sent < 64*maxStray; sent += len(piece) {
		if _, err := c.Write(piece); err != nil {
			break // as it should
		}
	}
	select {
	case err := <-cause:
		if !errors.Is(err, ErrStray) {
			t.Errorf("cause = %v, want %v", err, ErrStray)
		}
	case <-time.After(bridgetest.Patience):
		t.Errorf("the stream is open after %d bytes that don't belong there", 64*maxStray)
	}
}

func TestStreamsAreCutOff(t *testing.T) {
	ss := newStreamServer(t, func(ctx context.Context, s *stream) {
		_, _ = io.WriteString(s, "one")
		<-ctx.Done()
	})
	ss.Start()
	write(t, ss.dial(t), streamRequest)
	<-ss.taken
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := ss.streams.Wait(ctx); !errors.Is(err, late) {
		t.Errorf("Wait() = %v, want %v", err, late)
	}
	if len(ss.returned) != 1 {
		t.Error("Wait returned before who writes the stream")
	}
	if err := ss.streams.Wait(ctx); err != nil {
		t.Errorf("Wait() = %v with nothing left to cut off", err)
	}
	write(t, ss.dial(t), streamRequest)
	if <-ss.taken {
		t.Error("the connection was taken over after Wait")
	}
}

func TestStreamsAreNotTaken(t *testing.T) {
	serve := func(context.Context, *stream) { t.Error("it was served") }
	t.Run("HTTP/1.0", func(t *testing.T) {
		ss := newStreamServer(t, serve)
		ss.Start()
		c := ss.dial(t)
		write(t, c, "GET / HTTP/1.0\r\n\r\n")
		if text, err := io.ReadAll(c); !strings.HasSuffix(string(text), "\r\n\r\nnot taken") || err != nil {
			t.Errorf("response = %q, %v", text, err)
		}
	})
	t.Run("HTTP/2", func(t *testing.T) {
		ss := newStreamServer(t, serve)
		ss.StartTLS()
		res, err := ss.Client().Get(ss.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if body, err := io.ReadAll(res.Body); string(body) != "not taken" || res.ProtoMajor != 2 || err != nil {
			t.Errorf("HTTP/%d, body = %q, %v", res.ProtoMajor, body, err)
		}
	})
	t.Run("recorder", func(t *testing.T) {
		var streams Streams
		w := httptest.NewRecorder()
		streams.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil), time.Minute, func(_ context.Context, res *Response) func() {
			if err := res.Event("", "7", []byte("text")); err != nil {
				t.Errorf("Event() = %v", err)
			}
			return func() { _ = res.Comment() }
		})
		if got, want := w.Body.String(), "id: 7\ndata: text\n\n:\n\n"; got != want || !w.Flushed {
			t.Errorf("body = %q, want %q", got, want)
		}
		if err := streams.Wait(t.Context()); err != nil {
			t.Errorf("Wait() = %v", err)
		}
	})
}
