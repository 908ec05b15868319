package router

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// intercept has answer answer what a peer is sent, which reports whether it has.
func (p *scriptedPeer) intercept(answer func(w http.ResponseWriter, m *wire.Message, token string) bool) {
	usual := p.Config.Handler
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has left
		}
		m, err := wire.Parse(body, wire.Options{})
		token := wire.Get(wire.Get(m.Params, "_meta"), spec.MetaProgressToken)
		if err == nil && answer(w, &m, string(token)) {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		usual.ServeHTTP(w, r)
	})
}

// What is mended of what a legacy server sends is counted, once for each message, and what is as
// it should be is not.
func TestM2L09MendedServers(t *testing.T) {
	t.Parallel()
	manyValues := `["` + strings.Repeat(`x","`, 100) + `x"]`
	for _, tt := range []struct {
		name, method, rest, result string
		want                       []quirks.Quirk
		text                       string // in the client's result
	}{
		{"no content", "tools/call", `"name":"a"`, `{}`, []quirks.Quirk{quirks.ListMissing}, `"content":[]`},
		{"content null", "tools/call", `"name":"a"`, `{"content":null}`, []quirks.Quirk{quirks.ListMissing}, `"content":[]`},
		{"isError null", "tools/call", `"name":"a"`, `{"content":[],"isError":null}`, []quirks.Quirk{quirks.NullMembers}, `"content":[]`},
		{"nulls in items", "tools/call", `"name":"a"`, `{"content":[{"type":"text","text":"x","annotations":null},{"type":"text","text":"y","_meta":null}]}`, []quirks.Quirk{quirks.NullMembers}, `{"type":"text","text":"x"}`},
		{"nulls that may be", "tools/call", `"name":"a"`, `{"content":[],"structuredContent":{"a":null}}`, nil, `"a":null`},
		{"nextCursor null", "tools/list", "", `{"tools":[],"nextCursor":null}`, []quirks.Quirk{quirks.NullMembers}, `"tools":[]`},
		{"no schema", "tools/list", "", `{"tools":[{"name":"a"}]}`, []quirks.Quirk{quirks.ToolSchema}, `"inputSchema":{"type":"object"}`},
		{"a schema without type, and nulls", "tools/list", "", `{"tools":[{"name":"a","title":null,"inputSchema":{}},{"name":"b","title":null,"inputSchema":{}}]}`, []quirks.Quirk{quirks.NullMembers, quirks.ToolSchema}, `"inputSchema":{"type":"object"}`},
		{"a schema of an array", "tools/list", "", `{"tools":[{"name":"a","inputSchema":{"type":"array"}}]}`, []quirks.Quirk{quirks.ToolSchema}, `"tools":[]`},
		{"good tools", "tools/list", "", `{"tools":[{"name":"a","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object"}}]}`, nil, `"name":"a"`},
		{"many completions", "completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}`, `{"completion":{"values":` + manyValues + `}}`, []quirks.Quirk{quirks.Completions}, `"hasMore":true`},
		{"few completions", "completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}`, `{"completion":{"values":["x"]}}`, nil, `"values":["x"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, met := quirkRig(t, nil)
			r.peer.answer(tt.method, tt.result)
			name := ""
			if tt.method == spec.MethodToolsCall {
				name = "a"
			}
			if got := r.call(t, "1", tt.method, name, tt.rest); got.status != 200 || !strings.Contains(got.body, tt.text) {
				t.Errorf("= %d %s, want %q", got.status, got.body, tt.text)
			}
			wantMet(t, met, tt.want...)
		})
	}
}

// wantMet wants each of the quirks of a server to have been met once, and no other.
func wantMet(t *testing.T, met *quirks.Recorder, want ...quirks.Quirk) {
	t.Helper()
	var all []quirks.Meeting
	for _, q := range want {
		all = append(all, quirks.Meeting{Quirk: q, Count: 1})
	}
	if got := met.Meetings(); fmt.Sprint(got) != fmt.Sprint(all) {
		t.Errorf("met %v, want %v", got, all)
	}
}

// So is what a server does against the transport.
func TestM2L15MendedTransports(t *testing.T) {
	t.Parallel()
	const result = `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`
	stream := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}
	progress := func(token string, values ...string) (out string) {
		for _, v := range values {
			out += `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":` + v + "}}\n\n"
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		call   func(w http.ResponseWriter, id, token string)
		status int // of a notification; zero for 202
		want   []quirks.Quirk
	}{
		{"nothing", func(w http.ResponseWriter, id, token string) {
			stream(w, progress(token, "1", "2")+"data: "+fmt.Sprintf(result, id)+"\n\n")
		}, 0, nil},
		{"a response without an event", func(w http.ResponseWriter, id, _ string) { stream(w, fmt.Sprintf(result, id)) }, 0, []quirks.Quirk{quirks.UnframedAnswer}},
		{"a response without an id", func(w http.ResponseWriter, _, _ string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`)
		}, 0, []quirks.Quirk{quirks.AnswerWithoutID}},
		{"200 for a notification", func(w http.ResponseWriter, id, _ string) { stream(w, "data: "+fmt.Sprintf(result, id)+"\n\n") }, 200, []quirks.Quirk{quirks.NotificationStatus}},
		{"204 for a notification", func(w http.ResponseWriter, id, _ string) { stream(w, "data: "+fmt.Sprintf(result, id)+"\n\n") }, 204, []quirks.Quirk{quirks.NotificationStatus}},
		{"progress that falls", func(w http.ResponseWriter, id, token string) {
			stream(w, progress(token, "2", "1")+"data: "+fmt.Sprintf(result, id)+"\n\n")
		}, 0, []quirks.Quirk{quirks.ProgressOrder}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, met := quirkRig(t, nil)
			r.peer.intercept(func(w http.ResponseWriter, m *wire.Message, token string) bool {
				switch {
				case m.Method == spec.MethodToolsCall:
					tt.call(w, m.ID.String(), token)
				case m.Kind() == wire.Notification && tt.status > 0:
					w.WriteHeader(tt.status)
				default:
					return false
				}
				return true
			})
			body := strings.Replace(modernBody("1", "tools/call", `"name":"a"`), `"_meta":{`, `"_meta":{"progressToken":7,`, 1)
			if got := r.send(t, http.MethodPost, body, modernHeaders("tools/call", "a")); got.status != 200 || !strings.Contains(got.body, `"id":1`) {
				t.Errorf("= %d %s, want a response", got.status, got.body)
			}
			wantMet(t, met, tt.want...)
		})
	}
}

// A session that is lost is found in spite of its status.
func TestM2L03LostSessionStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int][]quirks.Quirk{http.StatusBadRequest: {quirks.LostSession}, http.StatusNotFound: nil} {
		r, met := quirkRig(t, nil)
		lost := false
		r.peer.intercept(func(w http.ResponseWriter, m *wire.Message, _ string) bool {
			if m.Method == spec.MethodInitialize {
				lost = false
			}
			if lost {
				http.Error(w, "Bad Request: no valid session ID provided", status)
			}
			return lost
		})
		r.call(t, "1", spec.MethodToolsList, "", "")
		lost = true
		if got := r.call(t, "2", spec.MethodToolsList, "", ""); got.status != 200 || !strings.Contains(got.body, `"tools":[]`) {
			t.Errorf("= %d %s, want the list of another session", got.status, got.body)
		}
		wantMet(t, met, want...)
	}
}

// A change that was not declared is told to whom it concerns all the same.
func TestM2L31UndeclaredNotice(t *testing.T) {
	t.Parallel()
	for capabilities, want := range map[string][]quirks.Quirk{`{"tools":{}}`: {quirks.UndeclaredNotice}, everyCapability: nil} {
		r, met := quirkRig(t, nil)
		r.peer.capabilities = capabilities
		r.call(t, "1", spec.MethodToolsList, "", "")
		bridgetest.Eventually(t, "the server's stream", r.peer.isListening)
		r.peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		r.peer.push(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		bridgetest.Eventually(t, "the answer to the ping after it", func() bool {
			r.peer.mu.Lock()
			defer r.peer.mu.Unlock()
			return strings.Contains(strings.Join(r.peer.got, "\n"), `"id":1,"result":{}`)
		})
		wantMet(t, met, want...)
	}
}

// A response may come on the stream of the session instead of its own.
func TestM2L15AnswerElsewhere(t *testing.T) {
	t.Parallel()
	r, met := quirkRig(t, nil)
	r.peer.intercept(func(w http.ResponseWriter, m *wire.Message, _ string) bool {
		if m.Method != spec.MethodToolsCall {
			return false
		}
		w.WriteHeader(http.StatusAccepted)
		id := m.ID.String()
		go r.peer.push(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[]}}`)
		return true
	})
	if got := r.call(t, "1", spec.MethodToolsCall, "a", `"name":"a"`); got.status != 200 || !strings.Contains(got.body, `"content":[]`) {
		t.Errorf("= %d %s, want the response", got.status, got.body)
	}
	bridgetest.Eventually(t, "the quirk", func() bool { return len(met.Meetings()) > 0 }) // whoever reads the stream tells of it
	wantMet(t, met, quirks.AnswerElsewhere)
}
