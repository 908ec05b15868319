package router

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
)

// shown are the names that clients see of the servers of policyPeers: open is called so by
// clients alone, and secret is hidden.
var shown = names.Options{
	Tools:     names.Part{Deny: []string{"secret*"}, Rename: map[string]string{"hall": "open"}, Describe: map[string]string{"open": "Opens."}},
	Prompts:   names.Part{Allow: []string{"hall"}, Rename: map[string]string{"hall": "open"}},
	Resources: names.Part{Deny: []string{"file:///secret*", "file:///{secret}"}},
}

var namedAnswers = map[string]string{
	"tools/list":               `{"tools":[{"name":"secret","inputSchema":{"type":"object"}},{"inputSchema":{"type":"object","x": 1e2},"description":"hall","name":"hall"},{"name":"s\u0065cret2","inputSchema":{"type":"object"}},{"name":"other","inputSchema":{"type":"object", "hall":1}}],"nextCursor":"more"}`,
	"prompts/list":             `{"prompts":[{"name":"hall","title":"hall"},{"name":"secret"}]}`,
	"resources/list":           `{"resources":[{"uri":"file:///secret","name":"open"},{"uri":"file:///open/x","name":"n"}]}`,
	"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"file:///{secret}","name":"n"},{"uriTemplate":"file:///open/{x}","name":"n"}]}`,
}

// naming is a change of a rig's options: what its clients see of its server.
func naming(t *testing.T, o names.Options) func(*Options) {
	m, err := names.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) {
		o.Servers[0].Access = access.Options{Names: m}
	}
}

// What is hidden or renamed has no other name, whichever way it is asked for: the answer is
// that of what does not exist, and the server is not asked.
func TestG03HoldsAtEveryDoor(t *testing.T) {
	t.Parallel()
	const tool, prompt, resource, odd = `-32602,"message":"Unknown tool: `, `-32602,"message":"Unknown prompt: `, `Resource not found`, `can't be held against what is shown`
	hidden := []struct{ name, method, rest, want string }{
		{"call", "tools/call", `"name":"secret"`, tool + `secret"`},
		{"escaped", "tools/call", `"n\u0061me":"\u0073ecret"`, tool},
		{"another case", "tools/call", `"name":"SECRET"`, tool},
		{"white space", "tools/call", `"name":"\u00a0secret"`, tool},
		{"own name", "tools/call", `"name":"hall"`, tool + `hall"`},
		{"own name in another case", "tools/call", `"name":"Hall"`, tool},
		{"prompt", "prompts/get", `"name":"secret"`, prompt + `secret"`},
		{"own name of a prompt", "prompts/get", `"name":"hall"`, prompt},
		{"resource", "resources/read", `"uri":"file:///secret"`, resource},
		{"dots", "resources/read", `"uri":"file:///open/../secret"`, resource},
		{"encoded", "resources/read", `"uri":"FILE:/open/%2e%2e/%73ecret"`, resource},
		{"completion", "completion/complete", `"ref":{"type":"ref/prompt","name":"secret"},"argument":{"name":"a","value":"b"}`, prompt},
		{"completion by its own name", "completion/complete", `"ref":{"type":"ref/prompt","name":"hall"},"argument":{"name":"a","value":"b"}`, prompt},
		{"completion of a resource", "completion/complete", `"ref":{"type":"ref/resource","uri":"file:///secret/{x}"},"argument":{"name":"a","value":"b"}`, resource},
		{"under two names", "tools/call", `"name":"open","NAME":"secret"`, odd},
		{"completion under two names", "completion/complete", `"ref":{"type":"ref/prompt","name":"open","Name":"secret"},"argument":{"name":"a","value":"b"}`, odd},
	}
	for _, peer := range policyPeers {
		for _, d := range doors {
			t.Run(d.name+" to a "+peer.name, func(t *testing.T) {
				r, sent := peer.rig(t, naming(t, shown))
				ask := d.open(t, r)
				for _, tt := range hidden {
					got := ask(d.request(tt.method, tt.rest))
					if !strings.Contains(got, tt.want) {
						t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
					}
					if legacy := tt.method == "resources/read" && !d.modern; tt.want == resource && strings.Contains(got, "-32002") != legacy {
						t.Errorf("%s: %s, want the code of its era", tt.name, got)
					}
				}
				if !d.modern {
					if got := ask(d.request("resources/subscribe", `"uri":"file:///secret"`)); !strings.Contains(got, "-32002") {
						t.Errorf("subscription: %s, want it refused", got)
					}
				}
				if got := sent(); strings.Contains(got, "ecret") || strings.Contains(got, "all") && strings.Contains(got, `"hall"`) {
					t.Errorf("the server was sent what is hidden:\n%s", got)
				}
				for method, rest := range map[string]string{"tools/call": `"name":"open"`, "prompts/get": `"name":"open"`, "completion/complete": `"ref":{"type":"ref/prompt","name":"open"},"argument":{"name":"open","value":"b"}`} {
					if got := ask(d.request(method, rest)); !strings.Contains(got, `"result"`) {
						t.Errorf("%s of what is shown: %s", method, got)
					}
				}
				got := sent()
				if n := strings.Count(got, `"name":"hall"`); n != 3 || strings.Contains(got, `"name":"open"`) && !strings.Contains(got, `"argument":{"name":"open","value":"b"}`) {
					t.Errorf("the server was sent, %d times by its own names:\n%s", n, got)
				}
				if r.modern != nil && !slices.Equal(r.modern.headers(), []string{"hall", "hall"}) {
					t.Errorf("Mcp-Name = %q, want the server's own names", r.modern.headers())
				}
			})
		}
	}
}

// Lists have what is shown by the names that clients see, page by page, and nothing else of an
// item changes.
func TestG03Lists(t *testing.T) {
	t.Parallel()
	for _, peer := range policyPeers {
		for _, d := range doors {
			t.Run(d.name+" to a "+peer.name, func(t *testing.T) {
				r, _ := peer.rig(t, naming(t, shown))
				r.answerAll(namedAnswers)
				ask := d.open(t, r)
				for method, want := range map[string][]string{
					"tools/list":               {`"tools":[{"inputSchema":{"type":"object","x": 1e2},"description":"Opens.","name":"open"},{"name":"other","inputSchema":{"type":"object", "hall":1}}]`, `"nextCursor":"more"`},
					"prompts/list":             {`"prompts":[{"name":"open","title":"hall"}]`},
					"resources/list":           {`"resources":[{"uri":"file:///open/x","name":"n"}]`},
					"resources/templates/list": {`"resourceTemplates":[{"uriTemplate":"file:///open/{x}","name":"n"}]`},
				} {
					got := ask(d.request(method, ""))
					for _, want := range want {
						if !strings.Contains(got, want) {
							t.Errorf("%s = %s, want %s", method, got, want)
						}
					}
				}
			})
		}
	}
}

// Where two tools would have one name, the list is an error that has both, in both eras and
// where sessions are passed on: none is lost in silence.
func TestG03Clash(t *testing.T) {
	t.Parallel()
	for _, peer := range policyPeers {
		for _, d := range doors[:4] {
			t.Run(d.name+" to a "+peer.name, func(t *testing.T) {
				r, _ := peer.rig(t, naming(t, shown))
				r.answerAll(map[string]string{"tools/list": `{"tools":[{"name":"open","inputSchema":{"type":"object"}}]}`})
				got := d.open(t, r)(d.request("tools/list", ""))
				if !strings.Contains(got, `"error"`) || !strings.Contains(got, `\"hall\" and \"open\"`) || !strings.Contains(got, "-32603") {
					t.Errorf("tools/list = %s, want an error with both names", got)
				}
			})
		}
	}
}

// Streams of hidden resources are not opened, and updates of them are not told.
func TestG03ListenStreams(t *testing.T) {
	t.Parallel()
	const filter = `{"toolsListChanged":true,"resourceSubscriptions":["file:///open/a","file:///open/../secret"]}`
	r := newRig(t, naming(t, shown))
	if ack := r.listen(t, "1", filter).next(); strings.Contains(ack, "secret") || !strings.Contains(ack, `"resourceSubscriptions":["file:///open/a"]`) {
		t.Errorf("acknowledged %s", ack)
	}
	r.eventually(t, "the server's stream is open", func() bool { return len(r.peer.sent("resources/subscribe")) == 1 })
	l := r.connect(t)
	l.ask(hello)
	l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	r.eventually(t, "the stream of the session is open", func() bool {
		r.peer.mu.Lock()
		defer r.peer.mu.Unlock()
		return len(r.peer.streams) > 1
	})
	for _, uri := range []string{"file:///secret", "file:///open/a"} {
		r.peer.push(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`)
	}
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) // and if neither is told
	if got := l.next(); !strings.Contains(got, "file:///open/a") {
		t.Errorf("a session was told %s, want the other update alone", got)
	}
}

// The log, the metrics and the audit log have the server's own names, in both eras.
func TestG03OwnNamesAreRecorded(t *testing.T) {
	t.Parallel()
	for _, peer := range policyPeers {
		for _, d := range []door{doors[0], doors[3]} {
			t.Run(d.name+" to a "+peer.name, func(t *testing.T) {
				log, counts, traced := &bridgetest.Log{}, &toolNames{}, &tracedNames{}
				r, _ := peer.rig(t, func(o *Options) {
					o.Logger, o.Metrics, o.NameTools = slog.New(slog.NewJSONHandler(log, nil)), counts, true
					naming(t, shown)(o)
					o.Observers = trace.New(traced)
				})
				ask := d.open(t, r)
				for i, name := range []string{"open", "secret"} {
					ask(d.request("tools/call", `"name":"`+name+`"`))
					r.eventually(t, name+" is logged", func() bool { return strings.Count(log.String(), `"method":"tools/call"`) == i+1 })
				}
				want := []string{"hall ok", "secret refused"}
				var got []string
				for _, line := range requestLines(t, log.String()) {
					if f := strings.Split(line, "|"); f[1] == "tools/call" {
						got = append(got, f[2]+" "+f[6])
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("the log has %q, want %q", got, want)
				}
				if got := counts.list(); !slices.Equal(got, want) {
					t.Errorf("the metrics have %q, want %q", got, want)
				}
				if got := traced.list(); !slices.Equal(got, []string{"hall", "secret"}) {
					t.Errorf("the traces have %q, want the server's own names", got)
				}
			})
		}
	}
}

// toolNames are Metrics that keep which tools were called, and how it ended.
type toolNames struct {
	mcp.NoMetrics
	mu    sync.Mutex
	calls []string
}

func (n *toolNames) Request(s mcp.Served) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.Tool != "" {
		n.calls = append(n.calls, s.Tool+" "+s.Outcome)
	}
}

func (n *toolNames) list() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.calls)
}

// tracedNames is an Observer that keeps which tools were called, and wants no more.
type tracedNames struct {
	mu    sync.Mutex
	calls []string
}

func (n *tracedNames) Begin(r *trace.Request) trace.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Method == "tools/call" {
		n.calls = append(n.calls, r.Subject())
	}
	return nil
}

func (n *tracedNames) list() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.calls)
}

// A call that waits for an answer is told of by the server's own name, and goes on when its client
// sends it again by the name that clients see.
func TestG03Questions(t *testing.T) {
	t.Parallel()
	m, err := names.New(names.Options{Tools: names.Part{Rename: map[string]string{"own": "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *Options) { o.Servers[0].Access = access.Options{Names: m} })
	r.peer.handle["tools/call"] = func(c *peerCall) string { return say(c.ask("elicitation/create", `{"message":"name?"}`)) }
	rd := r.tool(t, "1", allQuestions, "").round(t)
	told := r.g.Status(false).Questions.List
	if len(told) != 1 || told[0].Name != "own" || told[0].Method != "elicitation/create" {
		t.Errorf("the questions are %+v, want one during own", told)
	}
	if got := r.tool(t, "2", allQuestions, rd.retry(map[string]string{"elicitation/create": accept})); !strings.Contains(got.body, "Ada") {
		t.Errorf("the retry = %d %s", got.status, got.body)
	}
	if got := r.peer.sent("tools/call"); len(got) != 1 || !strings.Contains(got[0], `"name":"own"`) {
		t.Errorf("the server was sent %s", got)
	}
}

// A tool whose schema mirrors an argument into a header is called by its shown name, and the
// server gets the header of its own.
func TestG03MirroredParameters(t *testing.T) {
	t.Parallel()
	r, p := newModernRigWith(t, nil, naming(t, shown))
	r.answerAll(map[string]string{
		"tools/list": `{"tools":[{"name":"hall","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`,
		"tools/call": `{"content":[]}`,
	})
	r.call(t, "1", "tools/list", "", "")
	h := modernHeaders("tools/call", "open")
	body := modernBody("2", "tools/call", `"name":"open","arguments":{"region":"eu"}`)
	if got := r.send(t, http.MethodPost, body, h); got.code() != -32020 {
		t.Errorf("without the header: %d %s, want -32020", got.status, got.body)
	}
	h.Set("Mcp-Param-Region", "eu")
	if got := r.send(t, http.MethodPost, body, h); !strings.Contains(got.body, `"content":[]`) {
		t.Errorf("with the header: %d %s", got.status, got.body)
	}
	if got := p.headers(); !slices.Equal(got, []string{"hall"}) {
		t.Errorf("Mcp-Name = %q", got)
	}
}

// answerAll has the server of policyPeers answer so.
func (r *rig) answerAll(answers map[string]string) {
	for method, answer := range answers {
		if r.modern == nil {
			r.peer.answer(method, answer)
			continue
		}
		r.modern.mu.Lock()
		r.modern.answers[method] = fmt.Sprintf(`{"resultType":"complete","ttlMs":9000,"cacheScope":"public",%s`, answer[1:])
		r.modern.mu.Unlock()
	}
}
