package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/internal/tap"
)

// A restartable is a process over HTTP that can be started again at its address.
type restartable struct {
	url    string
	start  func(t *testing.T)
	kill   func()
	signal func(sig syscall.Signal) error
}

// newRestartable starts a server that a test may end and start again. It is ended with the test.
func newRestartable(t *testing.T, s *taskServer) *restartable {
	t.Helper()
	addr := rig.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	r := &restartable{url: "http://" + addr + "/mcp"}
	env, argv := s.web(addr, port)
	r.start = func(t *testing.T) {
		t.Helper()
		p, err := process.Start("tasks", env, argv...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill) // one that has ended, too
		r.kill = p.Kill
		r.signal = func(sig syscall.Signal) error { return syscall.Kill(p.Pid(), sig) }
		ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
		defer cancel()
		if err := p.Ready(ctx, r.url, 0); err != nil {
			t.Fatal(err)
		}
	}
	r.start(t)
	return r
}

// TestU02SlowServerOfBothEras has a server that knows both eras answer nothing until mcpbridge has given
// up waiting for discovery, and is opening a session. What it can do is told all the same, as directly.
func TestU02SlowServerOfBothEras(t *testing.T) {
	s := newServers["fastmcp"]
	web := newRestartable(t, s)
	if hello := newWireClient(t, web.url, true).hello; hello == nil {
		t.Fatal("it opens no session of 2025-11-25")
	}
	want := string(newWireClient(t, web.url, false).capabilities())
	between, err := tap.New(strings.TrimSuffix(web.url, "/mcp"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(between.Close)
	if err := web.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awake := make(chan error, 1)
	go func() { // ends with the test
		for t.Context().Err() == nil {
			if tried, _ := passedOf(between, "initialize"); len(tried) > 0 {
				awake <- web.signal(syscall.SIGCONT)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	bridge := serve(t, s.settings(atURL("web", between.URL("/mcp")), ", timeouts: {connect: 6s}")) // it waits for the first verdict
	select {
	case err := <-awake:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("no session was tried")
	}
	rig.Until(t, 3*time.Minute, "what the server can do is what it says directly", func() string {
		c := newWireClient(t, bridge+"web", false)
		var m struct {
			Result struct{ Capabilities json.RawMessage }
		}
		if answer := c.ask("server/discover", "", ""); json.Unmarshal(answer, &m) != nil || string(m.Result.Capabilities) != want {
			return fmt.Sprintf("%s, want %s", answer, want)
		}
		return ""
	})
}

// TestT16ServersKilled kills a server under many live tasks. Each is told within two looks that it
// failed, always alike, and none is made again.
func TestT16ServersKilled(t *testing.T) {
	s := oldServers["typescript"]
	web := newRestartable(t, s)
	bridge := serve(t, atURL("web", web.url), atCommand("pipe", s.pipe))
	for name, again := range map[string]func(t *testing.T){"web": web.start, "pipe": func(*testing.T) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newQuiz(bridge+name, "", 0) // for how it sends
			ids := c.makeTasks(t, 200)
			_ = c.send(t.Context(), "tools/call", `"name": "die", "arguments": {}`, "die", new(json.RawMessage)) // nobody answers
			again(t)
			err := rig.Each(len(ids), 16, func(i int) error { return c.wantLost(t.Context(), ids[i], name) })
			if err != nil {
				t.Error(err)
			}
			for _, label := range []string{"kept/0", "kept/199"} {
				var told struct{ Content []struct{ Text string } }
				err := c.send(t.Context(), "tools/call", fmt.Sprintf(`"name": "tally", "arguments": {"label": %q}`, label), "tally", &told)
				if err != nil || len(told.Content) != 1 || told.Content[0].Text != "0" {
					t.Errorf("%s was entered %+v times in the new process, %v", label, told.Content, err)
				}
			}
		})
	}
}

// makeTasks makes tasks that take long, and returns their ids.
func (q *quizRun) makeTasks(t *testing.T, n int) []string {
	t.Helper()
	ids := make([]string, n)
	err := rig.Each(n, 16, func(i int) error {
		var made struct{ ResultType, TaskID string }
		err := q.send(t.Context(), "tools/call", fmt.Sprintf(`"name": "slow_compute", "arguments": {"seconds": 600, "label": "kept/%d"}`, i), "slow_compute", &made)
		if err == nil && made.ResultType != "task" {
			err = fmt.Errorf("no task came of it, but %+v", made)
		}
		ids[i] = made.TaskID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// wantLost looks until a task has failed, twice at most, and holds that it stays as it is.
func (q *quizRun) wantLost(ctx context.Context, id, server string) error {
	look := func() (string, error) {
		var task json.RawMessage
		err := q.send(ctx, "tasks/get", fmt.Sprintf(`"taskId": %q`, id), id, &task)
		return string(task), err
	}
	first, err := look()
	if err != nil || !strings.Contains(first, `"status":"failed"`) {
		if first, err = look(); err != nil {
			return err
		}
	}
	for _, part := range []string{`"status":"failed"`, `"code":-32603`, server} {
		if !strings.Contains(first, part) {
			return fmt.Errorf("the task of the server that was killed is %s, want %s in it", first, part)
		}
	}
	if again, err := look(); err != nil || again != first {
		return fmt.Errorf("the task that failed is %s now, %v; it was %s", again, err, first)
	}
	return nil
}

// TestT11Restart restarts mcpbridge under live tasks. Those of a server of the client's own era go on;
// of those that it held itself, the client is told that it was restarted.
func TestT11Restart(t *testing.T) {
	urls := map[string]string{"old": start(t, oldServers["typescript"].web), "new": start(t, newServers["fastmcp"].web)}
	listen, admin := rig.FreeAddr(t), rig.FreeAddr(t)
	config := fmt.Sprintf("listen: %s\nadmin: %s\nservers:\n  %s\n  %s\n", listen, admin, atURL("old", urls["old"]), atURL("new", urls["new"]))
	p := programs.StartBridge(t, config, admin)
	ids := make(map[string]string)
	for name := range urls {
		ids[name] = newQuiz("http://"+listen+"/mcp/"+name, "", 0).makeTasks(t, 1)[0]
	}
	if err := p.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	p = programs.StartBridge(t, config, admin)
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	for name, id := range ids {
		q := newQuiz("http://"+listen+"/mcp/"+name, "", 0)
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			params := fmt.Sprintf(`"taskId": %q`, id)
			if method == "tasks/update" {
				params += `, "inputResponses": {}`
			}
			err := q.send(t.Context(), method, params, id, new(json.RawMessage))
			lost := err != nil && strings.Contains(err.Error(), `"code":-32602`) && strings.Contains(err.Error(), "restart")
			if lost != (name == "old") || err != nil && !lost {
				t.Errorf("%s of a task at the server %s: %v", method, name, err)
			}
		}
	}
}

// TestT11OneAnswer has two users at a server, and one of them ask for what is not theirs: the other's
// task, one of another endpoint, one whose time is up, a mangled and an unknown id. All have
// one answer, whatever is asked, and do nothing.
func TestT11OneAnswer(t *testing.T) {
	url := start(t, oldServers["typescript"].web)
	listen, admin := rig.FreeAddr(t), rig.FreeAddr(t)
	config := fmt.Sprintf("listen: %s\nadmin: %s\nauth: {tokens: [{name: ada, token: the-token-of-ada-0001}, {name: bob, token: the-token-of-bob-0002}]}\nservers:\n  it: {url: %q}\n  other: {url: %[3]q}\n  brief: {url: %[3]q, tasks: {ttl: 1s}}\n", listen, admin, url)
	p := programs.StartBridge(t, config, admin)
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	at := func(endpoint, user string) *quizRun {
		q := newQuiz("http://"+listen+"/mcp/"+endpoint, "", 0)
		q.token = map[string]string{"ada": "the-token-of-ada-0001", "bob": "the-token-of-bob-0002"}[user]
		return q
	}
	own := at("it", "bob").makeTasks(t, 1)[0]
	adas := at("it", "ada").makeTasks(t, 1)[0]
	over := at("brief", "bob").makeTasks(t, 1)[0]
	last := own[len(own)-1]
	ids := map[string]string{
		"of another user":     adas,
		"of another endpoint": at("other", "bob").makeTasks(t, 1)[0],
		"mangled":             own[:len(own)-1] + string(last^1),
		"unknown":             "nobody-has-this",
	}
	var answer string
	compare := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), `"code":-32602`) {
			t.Errorf("an id %s is answered %v, want -32602", what, err)
			return
		}
		_, said, _ := strings.Cut(err.Error(), `"error":`)
		if answer == "" {
			answer = said
		}
		if said != answer {
			t.Errorf("an id %s is answered %s, others %s", what, said, answer)
		}
	}
	for what, id := range ids {
		for method, more := range map[string]string{"tasks/get": "", "tasks/update": `, "inputResponses": {}`, "tasks/cancel": ""} {
			compare(what+" in "+method, at("it", "bob").send(t.Context(), method, fmt.Sprintf(`"taskId": %q%s`, id, more), id, new(json.RawMessage)))
		}
	}
	rig.Until(t, time.Minute, "the time of the task is up", func() string {
		err := at("brief", "bob").send(t.Context(), "tasks/get", fmt.Sprintf(`"taskId": %q`, over), over, new(json.RawMessage))
		if err == nil {
			return "it is there"
		}
		compare("whose time is up", err)
		return ""
	})
	for user, id := range map[string]string{"bob": own, "ada": adas} {
		var task struct{ Status string }
		if err := at("it", user).send(t.Context(), "tasks/get", fmt.Sprintf(`"taskId": %q`, id), id, &task); err != nil || task.Status != "working" {
			t.Errorf("the task of %s is %s, %v, want working", user, task.Status, err)
		}
	}
}

// TestT21Restart restarts mcpbridge under live tasks of a server of 2026-07-28 that clients of
// 2025-11-25 hold. With configured keys another session goes on with its task, which was run once;
// without, the client is told why it can't.
func TestT21Restart(t *testing.T) {
	url := start(t, newServers["fastmcp"].web)
	for name, keys := range map[string]string{"keys": "state_keys: [a-key-of-interop-0001]\n", "no keys": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listen, admin := rig.FreeAddr(t), rig.FreeAddr(t)
			config := fmt.Sprintf("listen: %s\nadmin: %s\n%sservers:\n  it: {url: %q, tasks: on}\n", listen, admin, keys, url)
			p := programs.StartBridge(t, config, admin)
			label := t.Name()
			made := newWireClient(t, "http://"+listen+"/mcp/it", true).send("tools/call", fmt.Sprintf(`"name": "slow_compute", "arguments": {"seconds": 2, "label": %q}, "task": {}`, label), "")
			id := string(member(t, made, "task", "taskId"))
			if err := p.Stop(time.Minute); err != nil {
				t.Error(err)
			}
			p = programs.StartBridge(t, config, admin)
			t.Cleanup(func() {
				if err := p.Stop(time.Minute); err != nil {
					t.Error(err)
				}
			})
			c := newWireClient(t, "http://"+listen+"/mcp/it", true)
			got := string(c.post(`{"jsonrpc": "2.0", "id": 7, "method": "tasks/result", "params": {"taskId": `+id+`}}`, make(map[string][]string)))
			if keys == "" {
				if !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, "the gateway was restarted") {
					t.Errorf("the result is %s, want an error that tells of the restart", got)
				}
				return
			}
			for _, part := range []string{"computed " + label + " in 2 s", `"io.modelcontextprotocol/related-task":{"taskId":` + id + `}`} {
				if !strings.Contains(got, part) {
					t.Errorf("the result is %s, want %s in it", got, part)
				}
			}
			if tally := string(c.send("tools/call", fmt.Sprintf(`"name": "tally", "arguments": {"label": %q}`, label), "")); !strings.Contains(tally, `"text":"1"`) {
				t.Errorf("the tool was run %s times, want once", tally)
			}
		})
	}
}
