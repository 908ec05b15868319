package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// nobody is the way to a server that can't be reached.
type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("nobody") }

// A configured era is not detected, unless the server is a command: then there is a
// Detector that sends nothing of its own. The oldest transport has one era.
func TestU03OpenAsConfigured(t *testing.T) {
	for _, tt := range []struct {
		name      string
		era       string
		transport legacyback.Transport
		command   bool
		want      spec.Era // before anything was sent
		detects   bool
	}{
		{"auto", "auto", "", false, spec.Unknown, true},
		{"legacy", "legacy", "", false, spec.Legacy, false},
		{"modern", "modern", "", false, spec.Modern, false},
		{"HTTP+SSE", "auto", legacyback.TransportSSE, false, spec.Legacy, false},
		{"a legacy command", "legacy", "", true, spec.Legacy, true},
		{"a modern command", "modern", "", true, spec.Modern, true},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			o := options("http://127.0.0.1/mcp")
			if tt.command {
				o = options("")
			}
			o.Transport, o.Settings.Era, o.RoundTripper = tt.transport, tt.era, nobody{}
			s, _ := byCommand(t, o, script(""))
			b := open(t, s)
			if _, detects := b.(*detect.Detector); b.Era() != tt.want || detects != tt.detects {
				t.Errorf("Open = %T of era %v, want %v, with a Detector: %v", b, b.Era(), tt.want, tt.detects)
			}
		})
	}
}

// What a back can't be made of is an error alone, with which no back comes.
func TestOpenRefuses(t *testing.T) {
	for _, era := range []spec.Era{spec.Legacy, spec.Modern} {
		o := options(nobodyURL)
		o.ClientInfo = nil
		s := New(o)
		s.SetEra(era)
		if b, err := s.Open(nil); err == nil || b != nil || s.Era() != era {
			t.Errorf("Open as %v = %v, %v, want an error alone", era, b, err)
		}
	}
	o := options(nobodyURL)
	o.Name = ""
	if b, err := New(o).Open(nil); err == nil || b != nil {
		t.Errorf("Open without a name = %v, %v, want an error alone", b, err)
	}
}

// What is for HTTP requests stays with those: a connection has none of it, and a WebSocket
// as many lanes as a URL.
func TestU03OptionsByTransport(t *testing.T) {
	lanes := settings.Lanes{Stdio: 1, HTTP: 4}
	dial := func(context.Context) (transport.Conn, error) { return nil, errors.New("no") }
	for _, tt := range []struct {
		name, url    string
		dial         func(context.Context) (transport.Conn, error)
		argv         []string
		onConnection bool
		stdio        int64
	}{
		{"HTTP", "https://h/mcp", nil, nil, false, 1},
		{"WebSocket", "wss://h/mcp", nil, nil, true, 4},
		{"WebSocket in capitals", "WS://h/mcp", nil, nil, true, 4},
		{"dialed", "", dial, nil, true, 1},
		{"command", "", nil, []string{"odd"}, true, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(tt.url)
			o.Transport, o.Headers, o.Credentials = legacyback.TransportSSE, http.Header{"X-Api-Key": {"k"}}, badge("Bearer b")
			o.Dial, o.Command.Argv, o.Settings.Lanes, o.OneClient = tt.dial, tt.argv, lanes, true
			s := New(o)
			defer s.Close()
			l, m := s.legacyOptions(), s.modernOptions()
			if s.OnConnection() != tt.onConnection || (l.URL == "") != tt.onConnection || (m.URL == "") != tt.onConnection {
				t.Errorf("OnConnection = %v, URLs %q and %q, want a connection: %v", s.OnConnection(), l.URL, m.URL, tt.onConnection)
			}
			if has := l.Headers != nil || l.Credentials != nil || l.Transport != "" || m.Headers != nil || m.Credentials != nil; has == tt.onConnection {
				t.Errorf("options of requests are given: %v, with a connection: %v", has, tt.onConnection)
			}
			if (l.Dial != nil) != (tt.onConnection && tt.argv == nil) || (l.Launcher != nil) != (tt.argv != nil) || (m.Dial != nil) != tt.onConnection {
				t.Errorf("the backs dial: %v, %v, and start processes: %v", l.Dial != nil, m.Dial != nil, l.Launcher != nil)
			}
			if socket := strings.HasPrefix(tt.name, "WebSocket"); l.Eager != socket || m.Eager != socket {
				t.Errorf("the backs dial at once after failures: %v, %v, want that of a WebSocket", l.Eager, m.Eager)
			}
			if l.Settings.Lanes.Stdio != tt.stdio || l.Settings.Lanes.HTTP != 4 || !l.OneClient {
				t.Errorf("lanes = %+v, for one client: %v, want %d", l.Settings.Lanes, l.OneClient, tt.stdio)
			}
		})
	}
}

// A server behind a WebSocket is of either era. The handshake has its headers, and each
// attempt is told.
func TestU03OverWebSocket(t *testing.T) {
	modern := map[string]string{spec.MethodDiscover: backtest.SaysModern, spec.MethodToolsList: `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[]}}`}
	legacy := map[string]string{spec.MethodInitialize: backtest.SaysWelcome, spec.MethodToolsList: backtest.SaysTools}
	for _, tt := range []struct {
		name    string
		answers map[string]string
		key     string
		want    spec.Era
	}{
		{"modern", modern, "k", spec.Modern},
		{"legacy", legacy, "k", spec.Legacy},
		{"without the key", modern, "", spec.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Api-Key") != "k" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				c, err := transport.AcceptWebSocket(w, r, transport.AcceptOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				_ = serve(tt.answers)(&process{far: c})
				_ = c.Close()
			}))
			defer srv.Close()
			o := options("ws" + strings.TrimPrefix(srv.URL, "http"))
			o.Headers = http.Header{"X-Api-Key": {tt.key}}
			var dialed []error
			o.Dialed = func(err error) { dialed = append(dialed, err) }
			v, err := New(o).Detect(t.Context(), spec.Unknown, mcp.Probing{Lists: true})
			if err != nil || v.Era != tt.want || len(dialed) != 1 || (dialed[0] == nil) != (tt.want != spec.Unknown) {
				t.Errorf("Detect = %v, %q, %v, attempts %v, want %v and one attempt", v.Era, v.Reason, err, dialed, tt.want)
			}
			if tt.want != spec.Unknown {
				return
			}
			if v.Status != http.StatusUnauthorized || !strings.Contains(v.Reason, "401") {
				t.Errorf("verdict = %+v, want the refusal", v)
			}
		})
	}
}

// A login is credentials of which the first is refused.
type login struct{ badge }

func (login) Renew(context.Context, upstream.CredentialRefusal) (string, error) {
	return "Bearer new", nil
}

// A WebSocket that is refused for its credentials is opened with new ones.
func TestU03WebSocketWithNewCredentials(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		c, err := transport.AcceptWebSocket(w, r, transport.AcceptOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		_ = serve(map[string]string{spec.MethodDiscover: backtest.SaysModern})(&process{far: c})
		_ = c.Close()
	}))
	defer srv.Close()
	o := options("ws" + strings.TrimPrefix(srv.URL, "http"))
	o.Credentials = login{"Bearer old"}
	if v, err := New(o).Detect(t.Context(), spec.Unknown, mcp.Probing{}); err != nil || v.Era != spec.Modern {
		t.Errorf("Detect = %v, %q, %v, want a modern server", v.Era, v.Reason, err)
	}
}

// Both backs dial, and serve what they reach.
func TestDialedServerIsServed(t *testing.T) {
	for _, tt := range []struct {
		answers map[string]string
		want    spec.Era
	}{
		{map[string]string{spec.MethodDiscover: backtest.SaysModern, spec.MethodToolsList: `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[]}}`}, spec.Modern},
		{map[string]string{spec.MethodInitialize: backtest.SaysWelcome, spec.MethodToolsList: backtest.SaysTools}, spec.Legacy},
	} {
		bridgetest.RunBubble(t, tt.want.String(), func(t *testing.T) {
			o := options("")
			o.Dial = func(context.Context) (transport.Conn, error) {
				near, far := transport.NewPipe()
				go func() { _ = serve(tt.answers)(&process{far: far}) }() // ends with the pipe
				return near, nil
			}
			b := open(t, New(o))
			got, err := backtest.Body(b.Serve(t.Context(), from(spec.Modern, spec.MethodToolsList, "{}"), nil))
			if err != nil || !strings.Contains(got, `"tools":[]`) || b.Era() != tt.want {
				t.Errorf("tools/list = %s, %v of a server that is %v, want the empty list of a %v one", got, err, b.Era(), tt.want)
			}
		})
	}
}
