package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

// A heldLink is the Session of a task that is held: what the server asks is about that task.
type heldLink struct {
	*link.Link
	cancels  bool
	released atomic.Int32
	held     atomic.Pointer[Held]
}

func (l *heldLink) Begin(h *Held) { l.held.Store(h) }
func (l *heldLink) Cancels() bool { return l.cancels }
func (l *heldLink) Release()      { l.released.Add(1) }

// Receive implements [link.Sink].
func (l *heldLink) Receive(ctx context.Context, m *wire.Message, _ *upstream.Call) {
	if m.Kind() != wire.Request {
		return
	}
	method, params, id := strings.Clone(m.Method), json.RawMessage(strings.Clone(string(m.Params))), m.ID
	l.Start(func() {
		switch a, err := l.held.Load().Ask(ctx, mcp.InputRequest{Method: method, Params: params}); {
		case err != nil:
			_ = l.Send(ctx, wire.AppendError(nil, id, wire.Errorf(spec.CodeInternal, "%v", err)))
		case a.Err != nil:
			_ = l.Send(ctx, wire.AppendError(nil, id, a.Err))
		default:
			_ = l.Send(ctx, wire.AppendResult(nil, id, a.Result, nil))
		}
	})
}

// ListenChanged implements [link.Sink].
func (*heldLink) ListenChanged(bool, bool) {}

// A holder is the Holding of a TaskServer, of which the client ada holds tasks.
type holder struct {
	*Holding
	t    *testing.T
	ts   *legacytest.TaskServer
	at   *heldLink                   // the first session
	next []*legacytest.TaskServer    // those of further sessions
	life time.Duration               // of tasks
	told func(created []byte) []byte // what the server's creation of a task becomes; nil for the same
}

func newHolder(t *testing.T, ts *legacytest.TaskServer) *holder {
	r := &holder{t: t, ts: ts, life: time.Hour}
	r.at = r.session(ts)
	r.Holding = &Holding{
		Tasks: newTable(t), Server: "scripted", Log: slog.New(slog.DiscardHandler), Quirks: quirks.New(quirks.Options{}),
		Describe: func(context.Context, *mcp.Request) (*mcp.Description, error) {
			return &mcp.Description{Capabilities: json.RawMessage(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`), ServerInfo: json.RawMessage(`{"name":"s"}`)}, nil
		},
		Error: link.ModernError, Explain: options().ClientError,
	}
	return r
}

// session opens a session at a server.
func (r *holder) session(ts *legacytest.TaskServer) *heldLink {
	l := &heldLink{cancels: true}
	l.Link = newLink(r.t, ts, l)
	return l
}

// open opens another session for a task.
func (r *holder) open(_ context.Context, h *Held) (Session, error) {
	l := r.session(r.next[0])
	r.next = r.next[1:]
	l.Begin(h)
	return l, nil
}

// request returns a request of ada's.
func (r *holder) request(method, params string) *mcp.Request {
	return &mcp.Request{Method: method, Params: json.RawMessage(params), Era: spec.Modern, Revision: spec.LatestModern, Principal: "ada",
		Capabilities: json.RawMessage(`{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`)}
}

// hold calls the tool, and holds the task.
func (r *holder) hold() *Held {
	r.t.Helper()
	req := r.request(spec.MethodToolsCall, `{"name":"t"}`)
	place := r.Take(req)
	created, err := r.at.Request(r.t.Context(), req.Method, Params(req.Params, r.life))
	if place == nil || err != nil {
		r.t.Fatalf("the place %v, and the call's error %v", place, err)
	}
	if r.told != nil {
		created = r.told(created)
	}
	return r.Hold(place, r.at, created, &Maker{Principal: req.Principal}, r.life, r.open)
}

// create is hold, and returns the id of the task.
func (r *holder) create() string {
	r.t.Helper()
	return r.hold().Task().ID
}

// serve returns the result of a request of ada's, or the error's text with its code.
func (r *holder) serve(method, params string) string {
	r.t.Helper()
	res, err := r.Serve(r.t.Context(), r.request(method, params), nil)
	if err != nil {
		return fmt.Sprint(mcp.WireError(err))
	}
	defer res.Release()
	if res.Era != spec.Modern || string(res.ServerInfo) != `{"name":"s"}` {
		r.t.Errorf("%s is answered as by a server %s of %v", method, res.ServerInfo, res.Era)
	}
	return string(res.Body)
}

func (r *holder) get(id string) string {
	r.t.Helper()
	return r.serve(spec.MethodTaskGet, `{"taskId":"`+id+`"}`)
}

func (r *holder) cancel(id string) string {
	r.t.Helper()
	return r.serve(spec.MethodTaskCancel, `{"taskId":"`+id+`"}`)
}

// wants fails the test unless a text has all parts.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got %s, want %s", text, part)
		}
	}
}

// done is the result of the tool.
const done = `{"content":[{"type":"text","text":"done"}]}`
