package upstream

import (
	"context"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A notingSink notes what it gets, a word each.
type notingSink []string

func (s *notingSink) Receive(_ context.Context, m *wire.Message, _ *Call) { *s = append(*s, m.Method) }
func (s *notingSink) Unclaimed(id wire.ID, _ *wire.Error) bool            { return id == wire.NumberID(8) }
func (s *notingSink) TooLong(_ context.Context, id wire.ID, _ int) {
	*s = append(*s, "long:"+id.String())
}

func TestInbox(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string // what the sink got, and how call 7 has ended
		needed     bool
		drops      string // what is counted, once
	}{
		{"response", okText, "answered", true, ""},
		{"response of another kind of id", strings.Replace(okText, "7", `"7"`, 1), "", false, "late answer"},
		{"response that the sink knows", strings.Replace(okText, "7", "8", 1), "", true, ""},
		{"late response", strings.Replace(okText, "7", "6", 1), "", false, "late answer"},
		{"notification", noteText, "notifications/x", true, ""},
		{"L2M-05 batch", `[` + noteText + `,` + okText + `]`, "notifications/x answered", true, ""},
		{"F-07 unreadable response", `{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}`, "failed: its response can't be read", true, ""},
		{"F-07 response that is not JSON", nanText, "failed: its response can't be read", true, ""},
		{"F-07 response with its id last", `{"result":{"a":NaN},"jsonrpc":"2.0","id":7}`, "failed: its response can't be read", true, ""},
		{"F-07 response that nests deeply", deepText(Depth - 1), "answered", true, ""},
		{"F-07 response that nests too deeply", deepText(Depth), "failed: its response can't be read", true, "limit depth"},
		{"F-07 request that is not JSON", `{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":NaN}}`, "", false, "unreadable"},
		{"F-07 unreadable", `{"neither":"a request"}`, "", false, "unreadable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			drops, sink := &backtest.Metrics{}, notingSink(nil)
			b, c := newTestInbox(t, drops, &sink)
			needed := b.ReceiveText(t.Context(), []byte(tt.text), false)
			got := strings.Join(append(sink, endOf(c)...), " ")
			if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" || needed != tt.needed || tt.drops != "" && drops.Count(tt.drops) != 1 {
				t.Errorf("got %q, needed = %v, counts %v; want %q, %v and %q", got, needed, &drops.Counts, tt.want, tt.needed, tt.drops)
			}
		})
	}
}

// A message beyond the limit is whose its beginning says, or its end.
func TestInboxTooLong(t *testing.T) {
	const end = `"},"jsonrpc":"2.0","id":7}`
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"a":"…`:             "failed:",
		`{"jsonrpc":"2.0","id":"q","method":"x","params":{"a…`: `long:"q"`,
		`{"jsonrpc":"2.0","method":"x","params":{"a…`:          "",
		`{"result":{"a":"…` + end:                              "failed:",
		`{"method":"x","params":{"a":"…` + end:                 `long:7`,
		`{"method":"x","params":{"a":"…","id":7}}`:             "",
	} {
		start, end, _ := strings.Cut(text, "…")
		drops, sink := &backtest.Metrics{}, notingSink(nil)
		b, c := newTestInbox(t, drops, &sink)
		b.TooLong(t.Context(), &transport.TooLongError{Limit: 400, Start: []byte(start), End: []byte(end)})
		got := strings.Join(append(sink, endOf(c)...), " ")
		if !strings.HasPrefix(got, want) || want == "" && got != "" || drops.Count("too long") != 1 {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// newTestInbox returns an Inbox with a call in flight.
func newTestInbox(t *testing.T, drops *backtest.Metrics, sink Sink) (*Inbox, *Call) {
	o := &Options{Name: "scripted", Metrics: drops}
	o.Fill(spec.Legacy)
	b := NewInbox(o, Reading{Batches: true, Keep: true}, sink)
	c := &Call{ID: 7, Wake: make(chan struct{}, 1)}
	if err := b.Calls.Add(c); err != nil {
		t.Fatal(err)
	}
	return b, c
}

// endOf tells how a call has ended, if it has.
func endOf(c *Call) []string {
	switch _, err, ended := c.Outcome(); {
	case err != nil:
		return []string{"failed: " + err.Error()}
	case ended:
		return []string{"answered"}
	}
	return nil
}
