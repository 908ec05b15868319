package downstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestResponseIsJSONOrAStream(t *testing.T) {
	msg := Message{Text: []byte(`{"result":{}}`), Large: []byte(`"a":1`), At: 11}
	w := httptest.NewRecorder()
	res := NewResponse(w, time.Minute)
	if err := res.JSON(http.StatusOK, msg); err != nil || w.Body.String() != `{"result":{"a":1}}` {
		t.Errorf("JSON() = %v, body %s", err, w.Body)
	}
	for what, err := range map[string]error{
		"JSON": res.JSON(http.StatusOK, msg), "Event": res.Event("", "", nil), "Comment": res.Comment(), "Last": res.Last(nil), "End": res.End(),
	} {
		if err != ErrEnded {
			t.Errorf("%s() after JSON = %v, want %v", what, err, ErrEnded)
		}
	}
}

func TestWriteBusy(t *testing.T) {
	w := httptest.NewRecorder()
	WriteBusy(w, wire.NumberID(7), wire.Errorf(spec.CodeInternal, "try again"))
	if after := w.Header().Get("Retry-After"); w.Code != http.StatusServiceUnavailable || after != "1" || !strings.Contains(w.Body.String(), `"id":7`) {
		t.Errorf("status %d, Retry-After %q, body %s; want 503, 1 and the id", w.Code, after, w.Body)
	}
}

// What is gathered goes out in one write, and what is large around the buffer.
func TestResponseGathers(t *testing.T) {
	w := httptest.NewRecorder()
	res := NewResponse(w, time.Minute)
	_ = res.Gather([]byte("one"))
	_ = res.Gather([]byte("two"))
	if w.Body.Len() > 0 {
		t.Errorf("written before Flush: %q", w.Body)
	}
	large := strings.Repeat("x", maxGathered+1)
	if err := errors.Join(res.Event("", "7", []byte(large)), res.Flush()); err != nil {
		t.Fatal(err)
	}
	want := "event: message\ndata: one\n\nevent: message\ndata: two\n\nid: 7\ndata: " + large + "\n\n"
	if got := w.Body.String(); got != want {
		t.Errorf("body = %d bytes, want %d", len(got), len(want))
	}
}

func TestResponseKeepsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		res := NewResponse(w, time.Minute)
		res.KeepAlive(10 * time.Second)
		time.Sleep(25 * time.Second)
		synctest.Wait()
		res.StopKeepAlive()
		time.Sleep(time.Minute)
		if got, want := w.Body.String(), ":\n\n:\n\n"; got != want {
			t.Errorf("body = %q, want %q", got, want)
		}
	})
}

// A client that does not read is told apart from one that has left, by whoever waits for
// the stream's context alone.
func TestResponseTellsStuckClients(t *testing.T) {
	cause := make(chan error, 1)
	var streams Streams
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams.Serve(w, r, 50*time.Millisecond, func(ctx context.Context, res *Response) func() {
			return func() {
				for res.Event("", "", make([]byte, 1<<20)) == nil {
				}
				<-ctx.Done()
				cause <- res.Cause(ctx)
			}
		})
	}))
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	write(t, c, streamRequest)
	if err := <-cause; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Cause() = %v, want %v", err, os.ErrDeadlineExceeded)
	}
	if err := streams.Wait(t.Context()); err != nil {
		t.Errorf("Wait() = %v", err)
	}
}

// Cut fails a write under way, and waits for nobody.
func TestResponseCut(t *testing.T) {
	ended := make(chan error, 1)
	writing := make(chan *Response, 1)
	var streams Streams
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams.Serve(w, r, time.Hour, func(_ context.Context, res *Response) func() {
			return func() {
				writing <- res
				var err error
				for err == nil {
					err = res.Event("", "", make([]byte, 1<<20))
				}
				ended <- err
			}
		})
	}))
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	write(t, c, streamRequest)
	res := <-writing
	time.Sleep(50 * time.Millisecond)
	res.Cut()
	select {
	case <-ended:
	case <-time.After(bridgetest.Patience):
		t.Fatal("the write goes on after Cut")
	}
	if err := res.Comment(); err == nil {
		t.Error("Comment() after Cut = nil")
	}
	if err := streams.Wait(t.Context()); err != nil {
		t.Errorf("Wait() = %v", err)
	}
}
