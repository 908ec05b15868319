package router

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// A curiousPeer is a modern server whose tool runs as a task that asks once, and then says what it was
// answered.
type curiousPeer struct {
	mu      sync.Mutex
	answers []string // inputResponses
}

func (p *curiousPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m, ok := readMessage(w, r); ok {
		writeAnswer(w, m.ID, p.answer(&m))
	}
}

func (p *curiousPeer) answer(m *wire.Message) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	const task = `"taskId":"task-1","ttlMs":null,"pollIntervalMs":50`
	switch m.Method {
	case spec.MethodDiscover:
		return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":60000,"cacheScope":"public"}`
	case spec.MethodToolsCall:
		return `{"resultType":"task",` + task + `,"status":"working"}`
	case spec.MethodTaskUpdate:
		p.answers = append(p.answers, string(wire.Get(m.Params, "inputResponses")))
		return `{"resultType":"complete"}`
	}
	if len(p.answers) == 0 {
		return `{"resultType":"complete",` + task + `,"status":"input_required","inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}}}`
	}
	return `{"resultType":"complete",` + task + `,"status":"completed","result":{"content":[{"type":"text","text":` + string(wire.Quote(p.answers[0])) + `}]}}`
}

// newOldHolderRig returns a gateway under tasks: on, before that server.
func newOldHolderRig(t *testing.T, p *curiousPeer) *rig {
	up := httptest.NewServer(p)
	t.Cleanup(up.Close)
	set := settings.Server{Linger: time.Millisecond, Tasks: settings.Tasks{Mode: settings.TasksOn}}
	return newRig(t, func(o *Options) {
		o.Servers = []ServerOptions{{Name: "peer", Settings: set, Open: func(c mcp.Changes) (mcp.Back, error) {
			return modernback.New(modernback.Options{Options: upstream.Options{Name: "peer", URL: up.URL, Changes: c, Logger: o.Logger, Settings: set, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
		}}}
	})
}

// A talk is a client of 2025-11-25 on some transport, who hears everything in one place.
type talk struct {
	t       *testing.T
	say     func(text string)
	heard   chan string
	open    func() // begins to listen beside requests; nil on connections, which do so anyway
	asked   []string
	answers map[string]string // by id of the request
}

// hear reads a message, if one comes in a while.
func (c *talk) hear(while time.Duration) bool {
	c.t.Helper()
	select {
	case text := <-c.heard:
		m, err := wire.Parse([]byte(text), wire.Options{})
		switch {
		case err != nil:
			c.t.Fatalf("the client heard %s: %v", text, err)
		case m.Kind() == wire.Response:
			c.answers[m.ID.String()] = text
		case m.Method == spec.MethodElicit:
			c.asked = append(c.asked, text)
		}
		return true
	case <-time.After(while):
		return false
	}
}

// ask sends a request and returns the answer.
func (c *talk) ask(id, method, params string) string {
	c.t.Helper()
	c.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	for c.answers[id] == "" {
		if !c.hear(patience) {
			c.t.Fatalf("%s was not answered for %v", method, patience)
		}
	}
	return c.answers[id]
}

// overHTTP returns a client that posts, in a session.
func (r *rig) overHTTP(t *testing.T) *talk {
	c := &talk{t: t, heard: make(chan string, 100), answers: make(map[string]string)}
	session := ""
	c.say = func(text string) {
		got := r.send(t, http.MethodPost, text, legacyHeaders(session))
		if id := got.header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		for line := range strings.Lines(got.body) {
			if line = strings.TrimPrefix(strings.TrimSpace(line), "data: "); strings.HasPrefix(line, "{") {
				c.heard <- line
			}
		}
	}
	c.open = func() {
		res := r.open(t, http.MethodGet, "", legacyHeaders(session))
		t.Cleanup(func() { res.Body.Close() })
		go func() { // ends with the stream
			for lines := bufio.NewScanner(res.Body); lines.Scan(); {
				if line, found := strings.CutPrefix(lines.Text(), "data: "); found && line != "" {
					c.heard <- line
				}
			}
		}()
	}
	return c
}

func onLine(l *line) *talk {
	return &talk{t: l.t, say: l.send, heard: l.read, answers: make(map[string]string)}
}

// A client that looks at its task and waits in no tasks/result is asked beside its requests, whatever
// it is connected by, and once.
func TestT25QuestionsBesideRequests(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(t *testing.T, r *rig) *talk{
		"GET stream": func(t *testing.T, r *rig) *talk { return r.overHTTP(t) },
		"stdio": func(t *testing.T, r *rig) *talk {
			near, far := newFiles(t, transport.StdioOptions{})
			return onLine(r.connectOver(t, near, far))
		},
		"WebSocket": func(t *testing.T, r *rig) *talk { return onLine(r.socket(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := &curiousPeer{}
			c := connect(t, newOldHolderRig(t, p))
			if hello := c.ask("0", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"old","version":"1"}}`); !strings.Contains(hello, `"tasks":{"cancel":{}`) {
				t.Errorf("initialize = %s, want tasks", hello)
			}
			c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			made := c.ask("1", "tools/call", `{"name":"x","arguments":{},"task":{}}`)
			m, err := wire.Parse([]byte(made), wire.Options{})
			task := `{"taskId":` + string(wire.Get(wire.Get(m.Result, "task"), "taskId")) + `}`
			if err != nil || !strings.Contains(made, `"status":"working"`) {
				t.Fatalf("tools/call = %s, %v, want a task", made, err)
			}
			for id := 2; len(c.asked) == 0; id++ {
				if got := c.ask(fmt.Sprint(id), spec.MethodTaskGet, task); !strings.Contains(got, `"status":"input_required"`) || strings.Contains(got, "who?") {
					t.Fatalf("tasks/get = %s, want that it asks, and not what", got)
				}
				if c.open != nil {
					c.open()
					c.open = nil
				}
				for c.hear(20 * time.Millisecond) { // a question may come beside it
				}
				if id == 1000 {
					t.Fatal("nobody was asked")
				}
			}
			q, err := wire.Parse([]byte(c.asked[0]), wire.Options{})
			if related := string(wire.Get(wire.Get(q.Params, "_meta"), spec.MetaRelatedTask)); err != nil || related != task {
				t.Errorf("the question %s is of the task %s, want %s", c.asked[0], related, task)
			}
			c.say(`{"jsonrpc":"2.0","id":` + q.ID.String() + `,"result":{"action":"accept","content":{"n":"Ada"}}}`)
			if got := c.ask("2000", spec.MethodTaskResult, task); !strings.Contains(got, `"text":"{\"q1\":{\"action\":\"accept\",\"content\":{\"n\":\"Ada\"}}}"`) {
				t.Errorf("tasks/result = %s, want what was answered", got)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(c.asked) != 1 || len(p.answers) != 1 {
				t.Errorf("%d questions and the answers %q, want one of each", len(c.asked), p.answers)
			}
		})
	}
}
