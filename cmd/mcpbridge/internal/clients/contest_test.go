package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A peer is a legacy server at the other end of a pipe. It says what is no response before each.
type peer struct {
	silent string // the method that it does not answer

	mu  sync.Mutex
	got []string // the methods that it was sent
}

// open returns a way to it, which ends it.
func (p *peer) open() (Way, error) {
	far, near := transport.NewPipe()
	go p.serve(near) // ends when far is closed
	return OverPipe(far), nil
}

func (p *peer) serve(conn transport.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		text, err := conn.Read()
		if err != nil {
			return
		}
		m, _ := wire.Parse(text, wire.Options{})
		p.mu.Lock()
		p.got = append(p.got, m.Method)
		p.mu.Unlock()
		if m.ID.IsZero() || m.Method == p.silent {
			continue
		}
		for _, answer := range []string{
			"hello", `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`, `{"jsonrpc":"2.0","id":"another","result":{}}`,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","tools":[]}}`, m.ID),
		} {
			_ = conn.Write([]byte(answer))
		}
	}
}

func selected(t *testing.T, id string) []Client {
	t.Helper()
	as, err := Select(id)
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// Over a pipe the bodies alone are sent: what asks for a stream is not, and nothing but the
// response ends a question.
func TestPlayOverPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p peer
		way, _ := p.open()
		out := Play(t.Context(), &selected(t, "go-sdk")[0], way)
		if err := way.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		synctest.Wait()
		want := []string{"server/discover", "initialize", "notifications/initialized", "tools/list"}
		if out.String() != "connects in 2025-11-25" || !slices.Equal(p.got, want) {
			t.Errorf("Play() = %s, after %q, want it to connect after %q", out.String(), p.got, want)
		}
	})
}

// A server that hangs is refused once the time of its opening is over, and the next has its own.
func TestContestWithOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, as := time.Now(), slices.Concat(selected(t, "go-sdk"), selected(t, "mcp-go"))
		var names []string
		c := Contest{
			Directly: (&peer{silent: "tools/list"}).open, Bridged: new(peer).open,
			Timeout: 10 * time.Second, Began: func(id string) { names = append(names, fmt.Sprintf("%s after %v", id, time.Since(began))) },
		}
		all, err := c.Run(t.Context(), as)
		if err != nil || len(all) != 2 {
			t.Fatalf("Run() = %+v, %v, want two results", all, err)
		}
		if want := []string{"go-sdk after 0s", "mcp-go after 10s"}; !slices.Equal(names, want) || time.Since(began) != 20*time.Second {
			t.Errorf("it was at %q, and has ended after %v, want %q and 20s", names, time.Since(began), want)
		}
		for i := range all {
			const directly = "tools/list is refused context deadline exceeded"
			if r := &all[i]; r.Client != as[i].ID || r.Directly.String() != directly || r.Bridged.String() != "connects in 2025-11-25" || r.Worse {
				t.Errorf("%s: directly %s, through mcpbridge %s, worse %v, want %s and that it connects", r.Client, r.Directly.String(), r.Bridged.String(), r.Worse, directly)
			}
		}
	})
}

// What keeps an opening from being played ends the contest: no verdict is made of it.
func TestContestThatCantBePlayed(t *testing.T) {
	gone, none := errors.New("the person has gone"), errors.New("starting nosuch: not found")
	missing := func() (Way, error) { return nil, none }
	for _, tt := range []struct {
		name              string
		directly, bridged func() (Way, error)
		want              error
	}{
		{"directly", missing, new(peer).open, none},
		{"through mcpbridge", new(peer).open, missing, none},
		{"somebody ends it", (&peer{silent: "initialize"}).open, new(peer).open, gone},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer time.AfterFunc(time.Second, func() { cancel(gone) }).Stop()
			c := Contest{Directly: tt.directly, Bridged: tt.bridged, Timeout: time.Minute, Began: func(string) {}}
			if all, err := c.Run(ctx, selected(t, "mcp-go")); !errors.Is(err, tt.want) || all != nil {
				t.Errorf("%s: Run() = %+v, %v, want %v", tt.name, all, err, tt.want)
			}
		})
	}
}

// What a server says that refuses is told in its words, with the message that it refused.
func TestPlayRefused(t *testing.T) {
	for _, tt := range []struct {
		name, kind, body string
		status           int
		want             string
	}{
		{"a page", "text/html", " <h1>Not Found</h1>\n", 404, "initialize is refused: 404 <h1>Not Found</h1>"},
		{"a redirect", "", "", 302, "initialize is refused: 302 Found"},
		{"an error", "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unsupported protocol version"}}`, 400, "initialize is refused: 400 (-32602) Unsupported protocol version"},
		{"a page instead of a response", "text/html", "<h1>It works</h1>", 200, "initialize is refused: 200 no response in the reply"},
		{"a stream without the response", "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n", 200, "initialize is refused: 200 the stream ended before the response: EOF"},
		{"a stream of other things", "text/event-stream", "event: greeting\ndata: hello\n\n", 200, `initialize is refused: 200 an event of type "greeting" is no message: `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer srv.Close()
			way := OverHTTP(srv.URL, nil, srv.Client().Transport)
			out := Play(t.Context(), &selected(t, "mcp-go")[0], way)
			if got := out.String(); out.Connects || !strings.HasPrefix(got, tt.want) {
				t.Errorf("Play() = %s, want %s", got, tt.want)
			}
			if err := way.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
}
