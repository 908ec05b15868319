package clients

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An opening with what the kinds of messages have: a session, a stream, an answer as a stream.
func TestPlayOverHTTP(t *testing.T) {
	const stream = "text/event-stream"
	for _, tt := range []struct {
		name    string
		get     int  // the status of GET
		session bool // the server has one
		want    Outcome
	}{
		{"a stream", 200, true, Outcome{Connects: true, Revision: "2025-06-18"}},
		{"no stream", 405, true, Outcome{Connects: true, Revision: "2025-06-18"}},
		{"a stream that is refused", 400, true, Outcome{Connects: true, Revision: "2025-06-18", Beside: []Refusal{{Message: "GET", Status: 400, Why: "no"}}}},
		{"no session", 405, false, Outcome{Connects: true, Revision: "2025-06-18"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				method := r.Method
				if len(text) > 0 {
					method = wire.Unquote(wire.Get(text, "method"))
				}
				got = append(got, fmt.Sprintf("%s|%s|%s", method, r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version")))
				switch method {
				case "initialize":
					if tt.session {
						w.Header().Set("Mcp-Session-Id", "s")
					}
					_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}`)
				case "GET":
					w.Header().Set("Content-Type", stream)
					w.WriteHeader(tt.get)
					_, _ = io.WriteString(w, "no")
				case "tools/list":
					w.Header().Set("Content-Type", stream)
					_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[]}}\n\n")
				}
			}))
			defer srv.Close()
			c, err := Select("mcp-go")
			if err != nil {
				t.Fatal(err)
			}
			c[0].Legacy = slices.Insert(c[0].Legacy, 1, Message{Verb: http.MethodGet, Header: map[string]string{"Mcp-Session-Id": "{session}"}, Optional: true})
			way := OverHTTP(srv.URL, nil, srv.Client().Transport)
			out := Play(t.Context(), &c[0], way)
			if err := way.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
			if out.String() != tt.want.String() || len(out.Beside) != len(tt.want.Beside) {
				t.Errorf("Play() = %s, want %s", out.String(), tt.want.String())
			}
			want := []string{"initialize||", "GET|s|", "notifications/initialized|s|2025-06-18", "tools/list|s|2025-06-18", "DELETE|s|2025-06-18"}
			if !tt.session {
				want = []string{"initialize||", "GET||", "notifications/initialized||2025-06-18", "tools/list||2025-06-18"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the server got %q, want %q", got, want)
			}
		})
	}
}

// A Way that answers as it is told, by method, and keeps what it was sent.
type told struct {
	answers map[string]string
	sent    []string
}

func (w *told) Send(_ context.Context, verb string, _ http.Header, body []byte, _ wire.ID) (Answer, error) {
	method := wire.Unquote(wire.Get(body, "method"))
	w.sent = append(w.sent, strings.Trim(verb+" "+method, " "))
	m, _ := wire.Parse([]byte(w.answers[method]), wire.Options{})
	return Answer{Status: 200, Message: m}, nil
}

func (w *told) Close() error { return nil }

// A client that asks for the era goes on in the one that it found.
func TestPlayFindsTheEra(t *testing.T) {
	const list = `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`
	for _, tt := range []struct {
		name, discover string
		want           []string
		revision       string
	}{
		{"modern", `{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2025-11-25","2026-07-28"]}}`, []string{"POST server/discover", "POST tools/list"}, "2026-07-28"},
		{"of another revision", `{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2025-11-25"]}}`, []string{"POST server/discover", "POST initialize", "GET", "POST notifications/initialized", "POST tools/list"}, "2025-11-25"},
		{"legacy", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"what?"}}`, []string{"POST server/discover", "POST initialize", "GET", "POST notifications/initialized", "POST tools/list"}, "2025-11-25"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Select("go-sdk")
			if err != nil {
				t.Fatal(err)
			}
			w := &told{answers: map[string]string{"server/discover": tt.discover, "initialize": `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`, "tools/list": list}}
			if out := Play(t.Context(), &c[0], w); !out.Connects || out.Revision != tt.revision || !slices.Equal(w.sent, tt.want) {
				t.Errorf("Play() = %s after %q, want %s after %q", out.String(), w.sent, tt.revision, tt.want)
			}
		})
	}
}

// What is refused beside an opening counts against mcpbridge, unless the server refuses it.
func TestNewResultBlames(t *testing.T) {
	get := []Refusal{{Message: "GET", Status: 400, Why: "no"}}
	fine, limps, fails := Outcome{Connects: true}, Outcome{Connects: true, Beside: get}, Outcome{Refused: &get[0]}
	for _, tt := range []struct {
		name              string
		directly, bridged Outcome
		worse             bool
	}{
		{"both connect", fine, fine, false},
		{"both fail", fails, fails, false},
		{"mcpbridge fails", fine, fails, true},
		{"the server fails", fails, fine, false},
		{"mcpbridge has no stream", fine, limps, true},
		{"neither has a stream", limps, limps, false},
		{"the server fails, mcpbridge limps", fails, limps, false},
	} {
		if got := NewResult(&Client{}, tt.directly, tt.bridged).Worse; got != tt.worse {
			t.Errorf("%s: worse = %v, want %v", tt.name, got, tt.worse)
		}
	}
}
