package router

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// crashes answers all requests as a modern command, until the tool "crash" ends it.
func crashes(c transport.Conn) {
	for {
		text, err := c.Read()
		if err != nil {
			return
		}
		m, err := wire.Parse(text, wire.Options{})
		name, _ := wire.GetString(m.Params, "name")
		result := `{"resultType":"complete","content":[],"tools":[]}`
		if m.Method == spec.MethodDiscover {
			result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
		}
		switch {
		case err != nil || m.Kind() != wire.Request:
		case name == "crash":
			_ = c.Close()
			return
		default:
			_ = c.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)) // nobody reads it: Read fails next
		}
	}
}

// newCrashingRig returns a gateway with tokens before a command that runs crashes.
func newCrashingRig(t *testing.T) *guardedRig {
	l := transport.NewLauncher(func() (transport.Conn, error) {
		near, far := transport.NewPipe()
		go crashes(far) // until the back closes the pipe
		return near, nil
	}, nil)
	dial := func(ctx context.Context) (transport.Conn, error) {
		p, err := l.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	return newGuardedRig(t, nil, func(o *Options) {
		o.Losses = upstream.NewLosses()
		o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) {
			return modernback.New(modernback.Options{Dial: dial, Options: upstream.Options{
				Name: "peer", Changes: c, Losses: o.Losses, Logger: o.Logger, Settings: settings.Server{}, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`),
			}})
		}
	})
}

// A holder is a legacy client over HTTP with a token of its own.
type holder struct {
	g       *guardedRig
	who     string
	session string
}

func (g *guardedRig) join(t *testing.T, who string) *holder {
	t.Helper()
	m := &holder{g: g, who: who}
	got := m.post(t, hello)
	if m.session = got.header.Get("Mcp-Session-Id"); got.status != http.StatusOK || m.session == "" {
		t.Fatalf("initialize of %s = %d %s, want a session", who, got.status, got.body)
	}
	m.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return m
}

func (m *holder) post(t *testing.T, body string) answer {
	t.Helper()
	h := legacyHeaders(m.session)
	h.Set("Authorization", "Bearer "+m.g.issuer.Token(resource, map[string]any{"sub": m.who}))
	return m.g.send(t, http.MethodPost, body, h)
}

// told sends a request that succeeds, and returns why its result says that state is lost.
func (m *holder) told(t *testing.T, method, params string) string {
	t.Helper()
	got := m.post(t, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
	result := wire.Get([]byte(got.body), "result")
	if _, data, ok := strings.Cut(got.body, "data: "); ok {
		result = wire.Get([]byte(data), "result")
	}
	if got.status != http.StatusOK || result == nil {
		t.Fatalf("%s of %s = %d %s, want a result", method, m.who, got.status, got.body)
	}
	why, _ := wire.GetString(wire.Get(result, "_meta"), spec.MetaStateLost)
	return why
}

// Legacy clients over HTTP with tokens look the same, and have a session each. When the command
// dies, who had state there is told with the next result, once; who has listed only, and who
// comes later, is not. One line of the log names the server, the cause, and by their principals
// those who have lost.
func TestU05LegacyLossByPrincipal(t *testing.T) {
	t.Parallel()
	g := newCrashingRig(t)
	ada, bob, eve := g.join(t, "ada"), g.join(t, "bob"), g.join(t, "eve")
	const call, list = `{"name":"a"}`, `{}`
	if why := ada.told(t, "tools/call", call) + bob.told(t, "tools/list", list); why != "" {
		t.Fatalf("told %q before anything was lost", why)
	}
	eve.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"crash"}}`)
	late, again := g.join(t, "dan"), g.join(t, "ada")
	for i, step := range []struct {
		of             *holder
		method, params string
		want           string
	}{
		{bob, "tools/call", call, ""}, {late, "tools/call", call, ""}, {again, "tools/call", call, ""},
		{ada, "tools/list", list, "exit"}, {eve, "tools/call", call, "exit"},
		{ada, "tools/call", call, ""}, {eve, "tools/list", list, ""}, {bob, "tools/call", call, ""},
	} {
		if why := step.of.told(t, step.method, step.params); why != step.want {
			t.Errorf("step %d: %s of %s told %q, want %q", i, step.method, step.of.who, why, step.want)
		}
	}
	var lines []string
	for line := range strings.Lines(g.logs.String()) {
		if strings.Contains(line, "lost state") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 {
		t.Fatalf("the log says %q, want one line", lines)
	}
	for _, want := range []string{"level=WARN", "upstream=peer", "cause=exit", "clients=2", `old/1 \([^)]*ada\)`, `old/1 \([^)]*eve\)`} {
		if !regexp.MustCompile(want).MatchString(lines[0]) {
			t.Errorf("the log has %s, want %s in it", lines[0], want)
		}
	}
	if strings.Contains(lines[0], "bob") || strings.Contains(lines[0], "dan") {
		t.Errorf("the log has %s, which names who has lost nothing", lines[0])
	}
}
