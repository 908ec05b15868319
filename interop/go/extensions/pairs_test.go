package extensions

import (
	"encoding/json"
	"strings"
	"testing"
)

// A taskServer is a server that has tasks, of either era.
type taskServer struct {
	web  func(addr, port string) (env, argv []string) // over HTTP; nil without
	pipe []string                                     // over pipes; nil if it is not tried
	// era is for the configuration, where mcpbridge would take the server for one of the other.
	era string
	// failing is the status of a task whose tool said that it failed; interval what it asks for
	// between looks, in milliseconds; broken the message of an error.
	failing  string
	interval int
	broken   string
	// nameless says that its questions don't say which task they belong to, against the
	// specification.
	nameless bool
}

const brokenText = "the job broke the protocol"

// oldServers are the servers of 2025-11-25. Their tools are the same.
var oldServers = map[string]*taskServer{
	"typescript": {
		web:  func(addr, _ string) (env, argv []string) { return nil, node("node/tasks-server.mjs", "--http", addr) },
		pipe: node("node/tasks-server.mjs"), failing: "failed", interval: 200, broken: "MCP error -32603: " + brokenText,
	},
	"python": {
		web: func(_, port string) (env, argv []string) {
			return nil, python1("python/tasks_server1.py", "--transport", "http", "--port", port)
		},
		failing: "completed", interval: 500, broken: brokenText,
	},
	"mcpgo": {
		web: func(addr, _ string) (env, argv []string) {
			return nil, []string{peer("bin/server-mcpgo"), "-tasks", "-http", addr}
		},
		era: "legacy", failing: "completed", broken: brokenText, nameless: true,
	},
}

func python1(argv ...string) []string {
	return append([]string{peer("bin/python-1/bin/python"), peer(argv[0])}, argv[1:]...)
}

// An oldClient is a program that plays with tasks of 2025-11-25.
type oldClient struct {
	argv   []string
	errand taskErrand // what it is told besides where, and what for
	// resumes says that it can go on in the session of an earlier connection.
	resumes bool
}

var oldClients = map[string]*oldClient{
	"stream":    {argv: node("node/streamtasks.mjs"), errand: taskErrand{Asks: true}, resumes: true},
	"python":    {argv: python1("python/tasks_client1.py"), errand: taskErrand{Asks: true}},
	"mcpgo":     {argv: []string{peer("bin/client-mcpgo"), "-tasks"}, errand: taskErrand{Asks: true}},
	"ext-tasks": {argv: node("node/tasks.mjs"), errand: taskErrand{Legacy: true}},
}

// A taskWorld is servers and mcpbridge before them.
type taskWorld struct {
	urls   map[string]string // of the servers over HTTP
	bridge string            // the URL that the names of the servers are added to; over a pipe with -pipe
}

// startTasks starts servers and an mcpbridge that has more in the configuration of each.
func startTasks(t *testing.T, servers map[string]*taskServer, more string) *taskWorld {
	t.Helper()
	w := &taskWorld{urls: make(map[string]string)}
	var lines []string
	for name, s := range servers {
		if s.web != nil {
			w.urls[name] = start(t, s.web)
			lines = append(lines, s.settings(atURL(name, w.urls[name]), more))
		}
		if s.pipe != nil {
			lines = append(lines, s.settings(atCommand(name+"-pipe", s.pipe), more))
		}
	}
	w.bridge = serve(t, lines...)
	return w
}

// settings adds what the server needs, and more with a comma before it, to its line of the
// configuration.
func (s *taskServer) settings(line, more string) string {
	if s.era != "" {
		more += ", era: " + s.era
	}
	return strings.TrimSuffix(line, "}") + more + "}"
}

// TestT04PairsOfLegacyTasks takes clients that know the tasks of 2025-11-25 to servers that have
// them, directly and through mcpbridge: they find the same.
func TestT04PairsOfLegacyTasks(t *testing.T) {
	w := startTasks(t, oldServers, "")
	for server, s := range oldServers {
		for client, c := range oldClients {
			t.Run(client+" to "+server, func(t *testing.T) {
				t.Parallel()
				errand := c.errand
				// In 2025-11-25 ext-tasks never calls tasks/result while a task waits for input,
				// which is where these servers ask.
				errand.Silent = client == "ext-tasks"
				c.compare(t, s, errand, w.urls[server], w.bridge+server)
				if s.pipe != nil {
					t.Run("pipe", func(t *testing.T) { c.comparePipes(t, s, errand, w.bridge+server+"-pipe") })
				}
			})
		}
	}
}

// compare has the client find out the same directly and through mcpbridge.
func (c *oldClient) compare(t *testing.T, s *taskServer, errand taskErrand, direct, through string) {
	t.Helper()
	want, got := c.both(t, s, errand, direct, through)
	same(t, got, want)
}

// both returns what the client finds at two places.
func (c *oldClient) both(t *testing.T, s *taskServer, errand taskErrand, direct, through string) (at, behind *taskFindings) {
	t.Helper()
	var found [2]*taskFindings
	for i, url := range []string{direct, through} {
		errand.target, errand.Label = target{URL: url}, url+" "+t.Name()
		found[i] = c.play(t, s, errand)
	}
	return found[0], found[1]
}

// comparePipes does so with a server that the client starts, and one that mcpbridge does.
func (c *oldClient) comparePipes(t *testing.T, s *taskServer, errand taskErrand, through string) {
	t.Helper()
	errand.target, errand.Label = target{Argv: s.pipe}, t.Name()
	direct := c.play(t, s, errand)
	errand.target = target{URL: through}
	same(t, c.play(t, s, errand), direct)
}

// play has the client play, judges what no server differs in, and returns the findings without
// what is made at random.
func (c *oldClient) play(t *testing.T, s *taskServer, errand taskErrand) *taskFindings {
	t.Helper()
	got := new(taskFindings)
	ask(t, c.argv, errand, got)
	want := &taskFindings{Plain: taskOutcome{Status: "completed", Text: "Hello, World!"}, Slow: taskOutcome{Status: "completed", Text: "computed slow in 1 s"}}
	if !errand.Silent {
		want.Confirm = taskOutcome{Status: "completed", Text: "deleted a.txt", Asked: []string{"Delete a.txt?"}}
		want.Two = taskOutcome{Status: "completed", Text: "name Ada, confirmed True", Asked: []string{"Is that right?", "What is its name?"}}
	}
	want.Looked.Status, want.Looked.PollIntervalMs, want.Looked.SameID = "working", s.interval, true
	core := &taskFindings{Plain: got.Plain, Slow: got.Slow, Confirm: got.Confirm, Two: got.Two, Looked: got.Looked}
	same(t, core, want)
	if got.Failing.Status != s.failing || got.Broken.Status != "failed" || got.Cancelled.Status != "cancelled" || got.Unknown.Code != -32602 {
		t.Errorf("tasks that don't go well: %+v, %+v, %+v, %+v", got.Failing, got.Broken, got.Cancelled, got.Unknown)
	}
	if got.Left == "" {
		t.Error("the client left no task behind")
	}
	if c.resumes && got.Session != "" {
		errand.Resume, errand.Session = got.Left, got.Session
		resumeTask(t, c.argv, errand)
	}
	got.Left, got.Session = "", ""
	return got
}

// TestT09PairsOfModernClients takes clients that know the extension io.modelcontextprotocol/tasks
// to servers that have tasks of 2025-11-25: they find what they would find on a server of their
// own era, but for ids, which are mcpbridge's.
func TestT09PairsOfModernClients(t *testing.T) {
	w := startTasks(t, oldServers, "")
	for server, s := range oldServers {
		at := map[string]string{server: w.bridge + server}
		if s.pipe != nil {
			at[server+" over a pipe"] = w.bridge + server + "-pipe"
		}
		for name, url := range at {
			for client, argv := range taskClients {
				t.Run(client+" to "+name, func(t *testing.T) {
					t.Parallel()
					s.playModern(t, client, argv, url)
				})
			}
		}
	}
}

func (s *taskServer) playModern(t *testing.T, client string, argv []string, url string) {
	t.Helper()
	want := wantTasks(client)
	want.Offered = map[string]json.RawMessage{"io.modelcontextprotocol/tasks": []byte(`{}`)}
	want.Looked.PollIntervalMs = s.interval
	want.OwnID = false // it is told its server's id, the client knows mcpbridge's
	want.Broken.Message = s.broken
	got := new(taskFindings)
	errand := taskErrand{target: target{URL: url}, Label: url + " " + client}
	ask(t, argv, errand, got)
	errand.Resume = got.Left
	got.Left, got.Session = "", ""
	if s.nameless { // when there is no call any more that they could belong to, they are refused
		want.Confirm, want.Two = taskOutcome{Status: "failed", Code: -32603}, taskOutcome{Status: "failed", Code: -32603}
		for _, o := range []*taskOutcome{&got.Confirm, &got.Two} {
			o.Message, o.Asked = "", nil // the message is the server's, as it was refused
		}
	}
	same(t, got, want)
	resumeTask(t, argv, errand)
}

// TestT13ModernClientsOfEverything takes them to server-everything, whose task asks in the
// middle on tasks/result alone.
func TestT13ModernClientsOfEverything(t *testing.T) {
	everything := "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
	w := startTasks(t, map[string]*taskServer{"everything": {
		web: func(_, port string) (env, argv []string) {
			return []string{"PORT=" + port}, node(everything, "streamableHttp")
		},
		pipe: node(everything, "stdio"),
	}}, "")
	want := &taskFindings{
		Plain:     taskOutcome{Status: "completed", Text: "# Research Report: bridges"},
		Ambiguous: taskOutcome{Status: "completed", Text: "# Research Report: python (snake)"},
		Cancelled: taskOutcome{Status: "cancelled"},
	}
	want.Ambiguous.Asked = wantLegacy().Ambiguous.Asked
	for _, server := range []string{"everything", "everything-pipe"} {
		for _, client := range []string{"fastmcp", "ext-tasks"} {
			t.Run(client+" to "+server, func(t *testing.T) {
				t.Parallel()
				got := new(taskFindings)
				ask(t, taskClients[client], taskErrand{target: target{URL: w.bridge + server}, Research: true}, got)
				same(t, got, want)
			})
		}
	}
}

// newServers are the servers of 2026-07-28.
var newServers = map[string]*taskServer{
	"fastmcp": {
		web: func(_, port string) (env, argv []string) {
			return nil, fastmcp("python/fastmcp_server.py", "--transport", "http", "--port", port)
		},
		interval: 200,
	},
}

func init() {
	if rmcp := peer("bin/tasks-rmcp"); exists(rmcp) { // interop/build makes it where there is cargo
		newServers["rmcp"] = &taskServer{pipe: []string{rmcp}, interval: 200}
	}
}

// TestT01TasksOfRust takes clients that know the extension to a server on the TaskManager of the
// Rust SDK, directly and through mcpbridge: they find what they find on fastmcp.
func TestT01TasksOfRust(t *testing.T) {
	s := newServers["rmcp"]
	if s == nil {
		t.Skip("no cargo has built it")
	}
	w := startTasks(t, map[string]*taskServer{"rmcp": s}, "")
	for name, to := range map[string]target{"directly": {Argv: s.pipe}, "through mcpbridge": {URL: w.bridge + "rmcp-pipe"}} {
		for client, argv := range taskClients {
			t.Run(client+" "+name, func(t *testing.T) {
				t.Parallel()
				got, want := new(taskFindings), wantTasks(client)
				want.Offered = map[string]json.RawMessage{"io.modelcontextprotocol/tasks": []byte(`{}`)}
				errand := taskErrand{target: to, Label: t.Name()}
				ask(t, argv, errand, got)
				errand.Resume = got.Left
				got.Left, got.Session = "", ""
				same(t, got, want)
				if to.URL != "" { // the server outlives the client
					resumeTask(t, argv, errand)
				}
			})
		}
	}
}

// TestT20PairsOfLegacyClients takes clients that know the tasks of 2025-11-25 to servers of
// 2026-07-28 that have the extension.
func TestT20PairsOfLegacyClients(t *testing.T) {
	w := startTasks(t, newServers, ", tasks: on")
	for server, s := range newServers {
		url := w.bridge + server
		if s.web == nil {
			url += "-pipe"
		}
		for client, c := range oldClients {
			t.Run(client+" to "+server, func(t *testing.T) {
				t.Parallel()
				s.playLegacy(t, client, c, url)
			})
		}
	}
}

// wantOld are the findings of a legacy client on a modern server.
func (s *taskServer) wantOld(client string) *taskFindings {
	want := wantTasks("fastmcp") // the calls that run unseen are mcpbridge's here
	want.Offered = map[string]json.RawMessage{"cancel": []byte(`{}`), "requests": []byte(`{"tools":{"call":{}}}`)}
	want.Looked.PollIntervalMs = s.interval
	want.OwnID = false // the ids are sealed
	want.Cancelled = taskOutcome{Status: "cancelled", Text: "cancelled", Code: -32602}
	failed := taskOutcome{Status: "failed", Code: -32603, Message: "MCP error -32603: Task ID failed"}
	want.Failing.Status = "failed" // as 2025-11-25 has it
	switch client {
	case "stream": // does not fetch what became of a task that failed
		want.Failing, want.Broken = failed, failed
		want.Failing.Fetched = map[string]any{"text": "the job failed", "isError": true}
		want.Broken.Fetched = map[string]any{"code": -32603., "message": "MCP error -32603: " + brokenText}
	case "ext-tasks": // likewise
		want.Transparent = ""
		want.Failing, want.Broken = taskOutcome{Status: "failed", Message: "the job failed"}, taskOutcome{Status: "failed", Message: brokenText}
		want.Cancelled = taskOutcome{Status: "cancelled"}
	case "mcpgo":
		want.Broken.Message = "internal error: " + brokenText
	}
	return want
}

func (s *taskServer) playLegacy(t *testing.T, client string, c *oldClient, url string) {
	t.Helper()
	errand := c.errand
	errand.target, errand.Label = target{URL: url}, url+" "+client
	got := new(taskFindings)
	ask(t, c.argv, errand, got)
	errand.Resume = got.Left // another session of the same principal
	got.Left, got.Session = "", ""
	for name, offered := range got.Offered { // Python's has spaces
		got.Offered[name] = json.RawMessage(compact(string(offered)))
	}
	same(t, got, s.wantOld(client))
	resumeTask(t, c.argv, errand)
}
