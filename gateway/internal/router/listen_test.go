package router

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

const ackedTodo = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["note://todo"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`

func updated(uri string) string {
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
}

func (r *rig) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s; %+v", patience, what, r.g.Snapshot())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestM2L30FramesAreStamped(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := r.listen(t, "7", `{"resourceSubscriptions":["note://todo"]}`)
	if got := f.next(); got != ackedTodo {
		t.Fatalf("first frame = %s\nwant          %s", got, ackedTodo)
	}
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://todo","_meta":{"who":"ada","io.modelcontextprotocol/subscriptionId":99}}}`)
	want := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://todo","_meta":{"who":"ada","io.modelcontextprotocol/subscriptionId":7}}}`
	if got := f.next(); got != want {
		t.Errorf("frame = %s\nwant    %s", got, want)
	}
	g := r.listen(t, `"7"`, `{"toolsListChanged":true}`)
	if got := g.next(); !strings.HasSuffix(got, `"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":"7"}}}`) {
		t.Errorf("ack of \"7\" = %s", got)
	}
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	if got := g.next(); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"7"}}}` {
		t.Errorf("frame of \"7\" = %s", got)
	}
}

func TestM2L31AckTellsTheTruth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, capabilities, filter, want string }{
		{"all", everyCapability, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["b:1","a:1","b:1",""]}`,
			`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["b:1","a:1"]}`},
		{"undeclared kinds left out", `{"tools":{},"prompts":{"listChanged":false},"resources":{"listChanged":true}}`, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:1"]}`,
			`{"resourcesListChanged":true}`},
		{"falsy and unknown members left out", everyCapability, `{"toolsListChanged":false,"promptsListChanged":null,"resourceSubscriptions":[],"taskIds":[],"com.example/x":["t"]}`, `{}`},
		{"empty stays open", everyCapability, `{}`, `{}`},
	} {
		t.Run("M2L-31 "+tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.peer.capabilities = tt.capabilities
			f := r.listen(t, "7", tt.filter)
			if got := f.next(); !strings.Contains(got, `"notifications":`+tt.want+`,"_meta"`) {
				t.Errorf("ack = %s, want %s", got, tt.want)
			}
			r.eventually(t, "one stream is open", func() bool { return r.g.Snapshot().Streams == 1 })
		})
	}
	t.Run("M2L-31 one refused narrows", func(t *testing.T) {
		r := newRig(t, nil)
		r.peer.answer("resources/subscribe", `{"code":-32602,"message":"no"}`)
		f := r.listen(t, "7", `{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}`)
		if got := f.next(); !strings.Contains(got, `"notifications":{"toolsListChanged":true},"_meta"`) {
			t.Errorf("ack = %s", got)
		}
		r.eventually(t, "the refused topic is not held", func() bool { return r.g.Snapshot().Pairs == 1 })
	})
}

func TestM2L33OnlyWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := r.listen(t, "7", `{"resourceSubscriptions":["note://todo"]}`)
	f.next()
	r.peer.push(updated("note://other"))
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
	r.peer.push(updated("note://todo/draft")) // under its ancestor's own URI
	if got := f.next(); !strings.Contains(got, `"uri":"note://todo",`) {
		t.Errorf("first change = %s, want note://todo for its sub-resource", got)
	}
}

func TestM2L34StreamsShareOneSubscription(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	streams := make([]*frames, 5)
	for i := range streams {
		streams[i] = r.listen(t, "7", `{"resourceSubscriptions":["note://todo"]}`)
		streams[i].next()
	}
	r.peer.push(updated("note://todo"))
	for _, f := range streams {
		if got := f.next(); !strings.Contains(got, "note://todo") {
			t.Errorf("frame = %s", got)
		}
	}
	if n := len(r.peer.sent("resources/subscribe")); n != 1 {
		t.Errorf("%d subscribes for 5 streams, want 1", n)
	}
	for i, f := range streams {
		if n := len(r.peer.sent("resources/unsubscribe")); n != 0 {
			t.Errorf("%d unsubscribes with %d streams open", n, len(streams)-i)
		}
		f.res.Body.Close()
	}
	r.eventually(t, "one unsubscribe", func() bool { return len(r.peer.sent("resources/unsubscribe")) == 1 })
}

func TestM2L36NothingIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for range 20 {
		f := r.listen(t, "7", `{"toolsListChanged":true,"resourceSubscriptions":["a:1","a:2"]}`)
		f.next()
		f.res.Body.Close()
	}
	r.eventually(t, "no streams, topics and pairs", func() bool {
		s := r.g.Snapshot()
		return s.Streams == 0 && s.Topics == 0 && s.Pairs == 0
	})
	r.eventually(t, "as many unsubscribes as subscribes", func() bool {
		return len(r.peer.sent("resources/subscribe")) == len(r.peer.sent("resources/unsubscribe"))
	})
}

func TestM2L38GracefulEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := r.listen(t, `"q"`, `{"resourceSubscriptions":["note://todo"]}`)
	f.next()
	r.g.EndStreams()
	want := `{"jsonrpc":"2.0","id":"q","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"peer","version":"7"},"io.modelcontextprotocol/subscriptionId":"q"}}}`
	if got := f.next(); got != want {
		t.Errorf("last frame = %s\nwant         %s", got, want)
	}
	if got := f.next(); got != "" {
		t.Errorf("after the result: %s", got)
	}
	if got := r.send(t, http.MethodPost, modernBody("1", "subscriptions/listen", `"notifications":{}`), modernHeaders("subscriptions/listen", "")); got.code() == 0 && !strings.Contains(got.body, "shutting down") {
		t.Errorf("listen while shutting down: %d %s", got.status, got.body)
	}
}

// The end waits for nobody: a server that does not answer any more is not asked what it is.
func TestM2L38EndDoesNotAskTheServer(t *testing.T) {
	t.Parallel()
	for name, filter := range map[string]string{"shared": `{"toolsListChanged":true}`, "forwarded": `{"toolsListChanged":true,"com.example/jobs":true}`} {
		t.Run("M2L-38 "+name, func(t *testing.T) {
			r, p := newModernRig(t, nil)
			f := r.listen(t, `"q"`, filter)
			f.next()
			silent := make(chan struct{})
			t.Cleanup(func() { close(silent) })
			p.mu.Lock()
			p.hold = map[string]chan struct{}{spec.MethodDiscover: silent}
			before := len(p.got)
			p.mu.Unlock()
			r.g.EndStreams()
			if got := f.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"q","result":{"resultType":"complete","_meta":{"`) {
				t.Errorf("last frame = %s, want the result", got)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, m := range p.got[before:] {
				t.Errorf("at the end the server was sent %s", m.Method)
			}
		})
	}
}

func TestM2L39CommentsKeepStreamsOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.KeepAlive = 10 * time.Millisecond })
	f := r.listen(t, "7", `{}`)
	if line, err := f.r.ReadString('\n'); err != nil || line != ":\n" {
		t.Errorf("first line = %q, %v, want a comment at once", line, err)
	}
	f.next()
	for range 6 {
		line, err := f.r.ReadString('\n')
		if err != nil || line != ":\n" && line != "\n" {
			t.Fatalf("line = %q, %v, want comments", line, err)
		}
	}
}

// The parameters that headers mirror are those of the last list: once the tools are told to have changed,
// calls are not held against it any more. The client may have listed them again at another replica.
func TestF02MirroredParametersOfChangedTools(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := r.listen(t, "7", `{"toolsListChanged":true}`)
	f.next()
	r.peer.answer("tools/call", `{"content":[]}`)
	r.peer.answer("tools/list", `{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`)
	r.call(t, "1", "tools/list", "", "")
	if got := r.call(t, "2", "tools/call", "x", `"name":"x","arguments":{"region":"eu"}`); !strings.Contains(got.body, "-32020") {
		t.Errorf("a call without the header of its list = %d %s, want -32020", got.status, got.body)
	}
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	f.next()
	if got := r.call(t, "3", "tools/call", "x", `"name":"x","arguments":{"region":"eu"}`); got.status != http.StatusOK {
		t.Errorf("the call after the change = %d %s, want it served", got.status, got.body)
	}
}
