package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An upstreamSession notes what it is sent, and answers calls.
type upstreamSession struct {
	mcp.Relay
	answer string
	failed error
	lost   error
	tells  []string // before the answer
	sent   []string // methods
}

func (u *upstreamSession) Call(m *wire.Message, c mcp.RelayedCall) {
	u.sent = append(u.sent, m.Method)
	for _, text := range u.tells {
		_ = c.Message(context.Background(), []byte(text))
	}
	if u.lost != nil {
		c.Lost(u.lost)
		return
	}
	c.Answer([]byte(u.answer), u.failed)
}

func (u *upstreamSession) Send(_ context.Context, m *wire.Message) error {
	u.sent = append(u.sent, m.Method)
	return nil
}

// A heard call, or client, notes what it hears.
type heard struct {
	mcp.RelayClient
	id     *mcp.Identity
	texts  []string
	answer string
	failed error
	lost   error
}

func (h *heard) Identity() *mcp.Identity { return h.id }
func (h *heard) Answer(text []byte, err error) {
	h.answer, h.failed = string(text), err
}
func (h *heard) Lost(err error) { h.lost = err }

// A heardCall is a heard for calls, whose messages come without a third argument.
type heardCall struct{ *heard }

func (heardCall) Arrival() *trace.Arrival { return nil }
func (heardCall) Trace() *trace.Request   { return nil }

func (h heardCall) Message(_ context.Context, text []byte) error {
	h.texts = append(h.texts, string(text))
	return nil
}

func (h *heard) Message(_ context.Context, text []byte, _ bool) error {
	h.texts = append(h.texts, string(text))
	return nil
}

func legacyHello() *mcp.Request {
	req := requestOf(spec.MethodInitialize, `{}`)
	req.Era, req.Session = spec.Legacy, "s-1"
	return req
}

func message(t *testing.T, text string) *wire.Message {
	t.Helper()
	m, err := wire.Parse([]byte(text), wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

// What a session passes on is decided on like any other request, and recorded.
func TestRelayedCalls(t *testing.T) {
	const hello = "initialize : allow 2 ok"
	for _, tt := range []struct {
		name, text string
		upstream   upstreamSession
		scopes     []string
		want       string // of the answer
		status     int    // of the refusal
		line       string
	}{
		{"allowed", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_x"}}`, upstreamSession{answer: `{"id":1,"result":{}}`}, nil, `{"id":1,"result":{}}`, 0, "tools/call tool:read_x allow 2 ok"},
		{"denied", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other"}}`, upstreamSession{}, nil, "", statusDenied, "tools/call tool:other deny 0 refused"},
		{"without a scope", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_x"}}`, upstreamSession{}, nil, "", statusForbidden, "tools/call tool:write_x deny 0 refused"},
		{"with the scope of this request", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_x"}}`, upstreamSession{answer: `{"id":1,"result":{}}`}, []string{"files:write"}, `{"id":1,"result":{}}`, 0, "tools/call tool:write_x allow 3 ok"},
		{"of two readings", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_x","NAME":"secret"}}`, upstreamSession{}, nil, "", statusDenied, "tools/call tool: deny 0 refused"},
		{"a list", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, upstreamSession{answer: `{"id":1,"result":{"tools":[{"name":"other"},{"name":"read_x"}]}}`}, nil, `{"id":1,"result":{"tools":[{"name":"read_x"}]}}`, 0, "tools/list : allow 2 ok"},
		{"a failed list", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, upstreamSession{answer: `{"id":1,"error":{"code":-1,"message":"no"}}`, failed: wire.Errorf(-1, "no")}, nil, `{"id":1,"error":{"code":-1,"message":"no"}}`, 0, "tools/list : allow 2 error"},
		{"a tool that fails", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_x"}}`, upstreamSession{answer: `{"id":1,"result":{"isError":true}}`, failed: mcp.ErrToolFailed}, nil, `{"id":1,"result":{"isError":true}}`, 0, "tools/call tool:read_x allow 2 tool_error"},
		{"cancelled", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_x"}}`, upstreamSession{lost: mcp.ErrCancelled}, nil, "", 0, "tools/call tool:read_x allow 2 cancelled"},
		{"lost", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_x"}}`, upstreamSession{lost: mcp.ErrSessionEnded}, nil, "", 0, "tools/call tool:read_x allow 2 failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log, up, client := newAudit(t), tt.upstream, heardCall{&heard{id: &mcp.Identity{Principal: "ada", Scopes: tt.scopes}}}
			New(Options{Server: "files", Policy: readers(), Audit: log.Log}).Session(legacyHello()).Relay(&up).Call(message(t, tt.text), client)
			if client.answer != tt.want || !errors.Is(client.failed, tt.upstream.failed) {
				t.Errorf("the answer is %s, %v, want %s", client.answer, client.failed, tt.want)
			}
			r := (*mcp.Refusal)(nil)
			if errors.As(client.lost, &r) != (tt.status != 0) || r != nil && (r.Status != tt.status || len(up.sent) > 0) {
				t.Errorf("the refusal is %v after the server got %v, want the status %d", client.lost, up.sent, tt.status)
			}
			if got := log.lines(t); !slices.Equal(got, []string{hello, tt.line}) {
				t.Errorf("the audit log has %q, want %q", got, tt.line)
			}
		})
	}
}

// Notifications and responses are passed on, but for those that would do what a request may
// not.
func TestRelayedNotifications(t *testing.T) {
	nobody := policy.New(false, []policy.Rule{{Principals: []string{"bob"}}})
	for _, tt := range []struct {
		name, text string
		policy     *policy.Policy
		passed     bool
	}{
		{"of progress", `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`, readers(), true},
		{"of an extension that is denied", `{"jsonrpc":"2.0","method":"notifications/x","params":{}}`, readers(), false},
		{"of an extension that is allowed", `{"jsonrpc":"2.0","method":"notifications/x","params":{}}`, policy.New(true, nil), true},
		{"without a policy", `{"jsonrpc":"2.0","method":"notifications/x"}`, nil, true},
		{"that is a call without an id", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read_x"}}`, readers(), false},
		{"that has another method, too", `{"jsonrpc":"2.0","method":"notifications/progress","Method":"tools/call"}`, readers(), false},
		{"that is a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, readers(), true},
		{"that is a response, and a request", `{"jsonrpc":"2.0","id":1,"result":{},"METHOD":"tools/call"}`, readers(), false},
		{"that is a response of who may nothing", `{"jsonrpc":"2.0","id":1,"result":{}}`, nobody, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := upstreamSession{}
			o := Options{Server: "files", Policy: tt.policy, Limiter: policy.NewLimiter(policy.Rates{Principal: policy.Rate{Concurrent: 1}})}
			relay := New(o).Session(legacyHello()).Relay(&up)
			for range 2 { // none keeps a place
				if err := relay.Send(t.Context(), message(t, tt.text)); (err == nil) != tt.passed {
					t.Errorf("Send = %v, want passed: %v", err, tt.passed)
				}
			}
			if (len(up.sent) == 2) != tt.passed {
				t.Errorf("the server got %q", up.sent)
			}
		})
	}
}

// An update of a resource that the client may not follow reaches it neither during a call
// nor beside one, however it is written.
func TestRelayedUpdatesAreHidden(t *testing.T) {
	texts := []string{
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///open/a"}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///etc/a"}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/upd\u0061ted","params":{"uri":"file:///open/secret"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"updated file:///etc/a"}}`,
	}
	want := []string{texts[0], texts[3]}
	for _, tt := range []struct {
		name   string
		policy *policy.Policy
		want   []string
	}{{"with a policy", readers(), want}, {"with one that denies nothing", policy.New(true, nil), texts}, {"without", nil, texts}} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(Options{Server: "files", Policy: tt.policy, Limiter: policy.NewLimiter(policy.Rates{})}).Session(legacyHello())
			during, beside := heardCall{&heard{}}, &heard{}
			s.Relay(&upstreamSession{tells: texts, answer: `{}`}).Call(message(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_x"}}`), during)
			client := s.Client(beside)
			for _, text := range texts {
				if err := client.Message(t.Context(), []byte(text), false); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(during.texts, tt.want) || !slices.Equal(beside.texts, tt.want) {
				t.Errorf("the client heard\n%s\nand beside the call\n%s", strings.Join(during.texts, "\n"), strings.Join(beside.texts, "\n"))
			}
		})
	}
}

// A session without anything to control is the session itself.
func TestNoControlOfSessions(t *testing.T) {
	var c *Control
	up, client := &upstreamSession{}, &heard{}
	if s := c.Session(legacyHello()); s.Relay(up) != mcp.Relay(up) || s.Client(client) != mcp.RelayClient(client) {
		t.Error("what controls nothing stands between")
	}
	if err := errors.Join(c.Open(legacyHello()), c.OpenRelay(legacyHello(), nil), c.Admit(legacyHello())); err != nil {
		t.Error(err)
	}
}
