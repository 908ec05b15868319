package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A scriptedServer replies to each request the same.
type scriptedServer struct {
	status       int
	header, body string // header is a Content-Type, or name: value
}

// RoundTrip implements [http.RoundTripper].
func (s scriptedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	name, value, other := strings.Cut(s.header, ": ")
	if !other {
		name, value = "Content-Type", s.header
	}
	return &http.Response{StatusCode: s.status, Request: r, ContentLength: -1, Body: io.NopCloser(strings.NewReader(s.body)),
		Header: http.Header{name: {value}}}, nil
}

// replyTo sends a call of id 7 to the server, and returns the reply.
func (s scriptedServer) replyTo(t *testing.T, r Reading, m *backtest.Metrics) *Reply {
	return s.longReplyTo(t, 400, r, m)
}

// longReplyTo is replyTo with another limit for a message.
func (s scriptedServer) longReplyTo(t *testing.T, limit int, r Reading, m *backtest.Metrics) *Reply {
	o := &Options{Name: "scripted", URL: "http://127.0.0.1/mcp", RoundTripper: s, MaxMessage: limit, Metrics: m}
	o.Fill(spec.Legacy)
	ctx, cancel := context.WithCancelCause(t.Context())
	reply, err := NewHTTP(o, r).Post(ctx, &Call{ID: 7, Cancel: cancel}, http.Header{}, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

const (
	nanText  = `{"jsonrpc":"2.0","id":7,"result":{"a":NaN}}`
	okText   = `{"jsonrpc":"2.0","id":7,"result":{"ok":1}}`
	lateText = `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"late"}}`
	noteText = `{"jsonrpc":"2.0","method":"notifications/x"}`
)

// deepText is a response whose result nests n levels deep.
func deepText(n int) string {
	return strings.Replace(okText, `{"ok":1}`, strings.Repeat("[", n)+strings.Repeat("]", n), 1)
}

// events are the texts on a stream.
func events(texts ...string) string {
	return "data: " + strings.Join(texts, "\n\ndata: ") + "\n\n"
}

func TestReply(t *testing.T) {
	const json, stream = "application/json", "text/event-stream"
	long := `{"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", 500) + `"}`
	for _, tt := range []struct {
		name   string
		server scriptedServer
		want   string // the messages, by their method or by "answer"
		err    string // part of the error after them; empty after the answer
		drops  string // what is counted, once each
	}{
		{"JSON", scriptedServer{200, json, okText}, "answer", "", ""},
		{"another message instead of the answer", scriptedServer{200, json, noteText}, "notifications/x", "something else", ""},
		{"L2M-05 a batch", scriptedServer{200, json, `[` + noteText + `, ` + okText + `]`}, "notifications/x answer", "", ""},
		{"L2M-05 a batch on a stream", scriptedServer{200, stream, events(`[` + noteText + `,"junk",` + okText + `]`)}, "notifications/x answer", "", "unreadable"},
		{"stream", scriptedServer{200, stream, events(noteText, okText)}, "notifications/x answer", "", ""},
		{"CRLF, comments, ids", scriptedServer{200, stream + "; charset=utf-8", ": hi\r\n\r\nid: 1\r\nretry: 5\r\ndata: \r\n\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":7,\"result\":{}}\r\n\r\n"}, "answer", "", ""},
		{"stream that ends early", scriptedServer{200, stream, events(noteText)}, "notifications/x", ErrUnanswered.Error(), ""},
		{"M2L-15 an error without framing", scriptedServer{200, stream, events(noteText) + lateText}, "notifications/x answer", "", ""},
		{"M2L-15 with a line break", scriptedServer{200, stream, events(noteText) + lateText + "\n"}, "notifications/x answer", "", ""},
		{"M2L-15 of another id", scriptedServer{200, stream, events(noteText) + strings.Replace(lateText, "7", "97", 1)}, "notifications/x", ErrUnanswered.Error(), ""},
		{"F-07 no JSON", scriptedServer{200, json, okText[:len(okText)-1]}, "", "can't be read", ""},
		{"F-07 trailing bytes", scriptedServer{200, json, okText + " x"}, "", "can't be read", ""},
		{"F-07 a name twice", scriptedServer{200, json, `{"jsonrpc":"2.0","id":7,"result":{},"result":{}}`}, "", "can't be read", ""},
		{"F-07 an unreadable answer on a stream", scriptedServer{200, stream, events(`{"jsonrpc":"2.0","id":7,"result":{},"error":7}`)}, "", "can't be read", ""},
		{"F-07 an answer that is not JSON, on a stream", scriptedServer{200, stream, events(nanText)}, "", "can't be read", ""},
		{"F-07 an answer that nests deeply", scriptedServer{200, json, deepText(150)}, "answer", "", ""},
		{"F-07 an answer that nests deeply, on a stream", scriptedServer{200, stream, events(deepText(150))}, "answer", "", ""},
		{"F-07 one of another call is skipped", scriptedServer{200, stream, events(strings.Replace(nanText, "7", "8", 1), okText)}, "answer", "", "unreadable"},
		{"F-07 unreadable JSON is skipped", scriptedServer{200, stream, events("{broken", okText)}, "answer", "", "unreadable"},
		{"F-07 invalid UTF-8 is skipped", scriptedServer{200, stream, events("\"\xff\"", okText)}, "answer", "", "unreadable"},
		{"F-07 another version is skipped", scriptedServer{200, stream, events(`{"jsonrpc":"1.0","method":"x"}`, okText)}, "answer", "", "unreadable"},
		{"the answer to another request", scriptedServer{200, json, strings.Replace(okText, "7", "99", 1)}, "", "another request, of id 99", "foreign answer"},
		{"202", scriptedServer{202, json, ""}, "", "without answering", ""},
		{"HTML", scriptedServer{200, "text/html", "<p>hello"}, "", "text/html", ""},
		{"too long", scriptedServer{200, json, long}, "", "400 bytes", "too long"},
		{"too long on a stream", scriptedServer{200, stream, events(long)}, "", "400 bytes", "too long"},
		{"401 with an error of the server's", scriptedServer{401, json, lateText}, "", "401 Unauthorized: late", ""},
		{"a redirect", scriptedServer{307, "Location: http://192.0.2.1/", ""}, "", "307 Temporary Redirect", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			drops := &backtest.Metrics{}
			r := tt.server.replyTo(t, Reading{Batches: true, Keep: true}, drops)
			got, err := readAll(r)
			if strings.Join(got, " ") != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("read %q, %v; want %q, and an error with %q", got, err, tt.want, tt.err)
			}
			if f := (*Failure)(nil); err != nil && (!errors.As(err, &f) || f.Again != (tt.err == ErrUnanswered.Error())) {
				t.Errorf("error %#v, want a Failure that asks for another attempt only where none came", err)
			}
			if tt.drops != "" && drops.Count(tt.drops) != 1 {
				t.Errorf("%d counted as %s, want 1", drops.Count(tt.drops), tt.drops)
			}
		})
	}
}

// readAll reads a reply up to its response.
func readAll(r *Reply) (got []string, err error) {
	for {
		m, err := r.Next()
		switch {
		case err != nil:
			return got, err
		case m.Kind() == wire.Response:
			response := r.Response()
			response.Free()
			return append(got, "answer"), nil
		}
		got = append(got, m.Method)
	}
}

// A server's messages may nest as deeply as those of clients, if that is more.
func TestReplyDepth(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for depth, want := range map[int]string{Depth: "can't be read", 2 * Depth: ""} {
			server := scriptedServer{200, "application/json", deepText(Depth + 1)}
			if stream {
				server = scriptedServer{200, "text/event-stream", events(deepText(Depth + 1))}
			}
			drops := &backtest.Metrics{}
			r := server.longReplyTo(t, 1<<20, Reading{}, drops)
			r.h.opts.Limits = limits.Set{limits.Depth.Key: int64(depth)}
			r.h.opts.Fill(spec.Legacy)
			_, err := readAll(r)
			if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || AsFailure(err).Again) {
				t.Errorf("stream %v: with a limit of %d: %v, want an error with %q, and no other attempt", stream, depth, err, want)
			}
			if hit := drops.Count("limit depth"); (hit == 1) != (want != "") {
				t.Errorf("stream %v: with a limit of %d: the limit was hit %d times", stream, depth, hit)
			}
		}
	}
}

// What stands behind the response in its batch has arrived with it, and is passed on, even if there is no
// time for the end of the stream.
func TestL2M05BehindTheAnswerInABatch(t *testing.T) {
	const body = `[` + okText + `,"junk",` + noteText + `]`
	for name, server := range map[string]scriptedServer{
		"JSON": {200, "application/json", body}, "stream": {200, "text/event-stream", events(body)},
	} {
		drops := &backtest.Metrics{}
		r := server.replyTo(t, Reading{Batches: true, Keep: true}, drops)
		r.h.slowTails.Store(maxSlowTails)
		var after []string
		r.After = func(m *wire.Message) { after = append(after, m.Method) }
		got, err := readAll(r)
		if strings.Join(append(got, after...), " ") != "answer notifications/x" || err != nil || drops.Count("unreadable") != 1 {
			t.Errorf("%s: read %q, then %q, %v, counted %v", name, got, after, err, &drops.Counts)
		}
	}
}

// An HTTP error that holds one of JSON-RPC is that of the server.
func TestReplyRejection(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{lateText, "late"}, {"<p>what?", ""}, {okText, ""},
	} {
		r := scriptedServer{404, "application/json", tt.body}.replyTo(t, Reading{}, &backtest.Metrics{})
		status, m := r.Rejection()
		if status.Code != 404 || status.Note != tt.want || (m != nil) != (tt.want != "") {
			t.Errorf("Rejection of %s = %+v, %v, want an error: %q", tt.body, status, m, tt.want)
		}
	}
}

// It arrives whole, as a response under 200 does, and what is beyond the limit for both says so.
func TestReplyLongRejection(t *testing.T) {
	const report = 100 << 10
	body := strings.Replace(lateText, `"late"`, `"late","data":"`+strings.Repeat("x", report)+`"`, 1)
	r := scriptedServer{400, "application/json; charset=utf-8", body}.longReplyTo(t, 1<<20, Reading{}, &backtest.Metrics{})
	if status, m := r.Rejection(); status.Note != "late" || m == nil || len(m.Error.Data) != len(`""`)+report || m.Error.Code != spec.CodeInvalidParams {
		t.Errorf("Rejection = %+v, %v, want the error with its data", status, m)
	}
	drops := &backtest.Metrics{}
	r = scriptedServer{400, "application/json", body}.longReplyTo(t, report, Reading{}, drops)
	if status, m := r.Rejection(); !strings.Contains(status.Note, "more than 102400 bytes; raise limits.upstream_message") || m != nil || drops.Count("limit upstream_message") != 1 {
		t.Errorf("Rejection beyond the limit = %+v, %v, counted %v, want a note of the limit", status, m, &drops.Counts)
	}
	r = scriptedServer{400, "text/html", body}.longReplyTo(t, 1<<20, Reading{}, &backtest.Metrics{})
	if status, m := r.Rejection(); status.Note != "" || m != nil {
		t.Errorf("Rejection of a long page = %+v, %v, want the status alone", status, m)
	}
}

// What a Reading does not allow is no message.
func TestReplyWithoutBatches(t *testing.T) {
	got, err := readAll(scriptedServer{200, "application/json", fmt.Sprintf(`[%s]`, okText)}.replyTo(t, Reading{}, &backtest.Metrics{}))
	if len(got) > 0 || err == nil {
		t.Errorf("read %q, %v, want a batch refused", got, err)
	}
}

// However much of what a server sends is no message, it neither takes the stack nor the memory: with
// either of them the whole process would end.
func TestReplyOfJunk(t *testing.T) {
	const n = 200_000
	defer debug.SetMaxStack(debug.SetMaxStack(16 << 20))
	junk := `[` + strings.Repeat("0,", n) + okText + `]`
	for _, tt := range []struct {
		name   string
		server scriptedServer
		drops  int
	}{
		{"a batch", scriptedServer{200, "application/json", junk}, n},
		{"a batch on a stream", scriptedServer{200, "text/event-stream", events(junk)}, n},
		{"batches without messages", scriptedServer{200, "text/event-stream", strings.Repeat("data: []\n\n", n) + events(okText)}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // what is useless is read slowly
				drops := &backtest.Metrics{}
				got, err := readAll(tt.server.longReplyTo(t, 1<<20, Reading{Batches: true, Keep: true}, drops))
				if strings.Join(got, " ") != "answer" || err != nil || drops.Count("unreadable") != tt.drops {
					t.Errorf("read %q, %v, and counted %d; want the answer and %d", got, err, drops.Count("unreadable"), tt.drops)
				}
			})
		})
	}
}

// The elements of a batch are found one after the other: an index of them would be many times as large
// as the batch.
func TestReplyOfManyElements(t *testing.T) {
	body := `[` + okText + strings.Repeat(",0", 1<<19) + `]`
	r := scriptedServer{200, "application/json", body}.longReplyTo(t, 2<<20, Reading{Batches: true, Keep: true}, &backtest.Metrics{})
	defer r.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := r.Next()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || m.Kind() != wire.Response || took > 8<<20 {
		t.Errorf("Next() = %v, %v, which took %d bytes, want the answer in a few times %d", m, err, took, len(body))
	}
}
