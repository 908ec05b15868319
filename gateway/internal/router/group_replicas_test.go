package router

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	made "github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// groupReplicas are three replicas with a group "all" of a server of each era that all reach, "old"
// and "new", and of two of which each has a process of its own, as of commands: "one" is modern,
// and "oneold" is legacy. The second replica serves all calls to "one", and the third those to
// "oneold" of clients that have no session of their own there.
type groupReplicas struct {
	*deployment
	old  *scriptedPeer
	new  *credulousPeer
	one  []*credulousPeer // by replica
	olds []*scriptedPeer
}

func newGroupReplicas(t *testing.T, change ...func(*scriptedPeer)) *groupReplicas {
	t.Helper()
	g := &groupReplicas{old: newPeer(t), new: newCredulousPeer(t)}
	g.old.answer("tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`)
	g.old.answer("tools/call", say("of old"))
	for _, c := range change {
		c(g.old)
	}
	g.deployment = newDeployment(t, 3, func(o *Options) {
		one, old := newCredulousPeer(t), newPeer(t)
		g.one, g.olds = append(g.one, one), append(g.olds, old)
		old.answer("tools/list", `{"tools":[{"name":"b","inputSchema":{"type":"object"}}]}`)
		old.answer("resources/list", `{"resources":[{"uri":"file:///d","name":"d"}]}`)
		old.handle["tools/call"] = func(c *peerCall) string {
			return say(c.ask("elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{}}}`))
		}
		for _, c := range change {
			c(old)
		}
		t.Cleanup(old.CloseClientConnections)
		o.Servers = []ServerOptions{
			legacyMember("old", g.old, o), {Name: "new", Open: modernMember("new", g.new, o), OpenPeer: madeOf("new", o).OpenPeer},
			{Name: "one", Open: modernMember("one", one, o), OpenPeer: madeOf("one", o).OpenPeer, HoldFor: time.Minute},
			legacyMember("oneold", old, o), {Name: "all", Group: groupOf("old", "new", "one", "oneold")},
		}
		o.Servers[3].HoldFor = time.Minute
		o.Servers[4].Group.NameMax = 40
	})
	t.Cleanup(g.old.CloseClientConnections)
	g.visitAt(t, 1, spec.Modern, "one").call("t", "")
	g.visitAt(t, 2, spec.Modern, "oneold").ask(spec.MethodToolsList, "", "")
	return g
}

func legacyMember(name string, p *scriptedPeer, o *Options) ServerOptions {
	return ServerOptions{Name: name, OpenPeer: madeOf(name, o).OpenPeer, Open: func(c mcp.Changes) (mcp.Back, error) {
		up := memberOptions(name, p.URL, o, c)
		if o.Peers != nil {
			up.Sealer, _ = requeststate.NewSealerOf(o.Peers.Self().Instance) // as that of the gateway
		}
		return legacyback.New(legacyback.Options{Options: up})
	}}
}

// madeOf returns a server that other replicas can watch.
func madeOf(name string, o *Options) *made.Server {
	return made.New(made.Options{Options: memberOptions(name, "", o, nil)})
}

// visitAt returns a client of a replica.
func (g *groupReplicas) visitAt(t *testing.T, i int, era spec.Era, server string) *visitor {
	t.Helper()
	v := g.all[i].visit(t, era, server)
	if era == spec.Modern {
		v.capabilities = strings.TrimSuffix(allQuestions, "}") + `,"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	}
	return v
}

// at has a client send what follows to another replica.
func (g *groupReplicas) at(i int, v *visitor) *visitor {
	v.r = &g.all[i%len(g.all)].rig
	return v
}

// A server with one process for each principal is that in a group, too: whichever replica's group
// is asked, by clients of both eras, calls and lists reach that process, and no other one is used.
func TestG19OneProcessForAllReplicasOfAGroup(t *testing.T) {
	t.Parallel()
	g := newGroupReplicas(t)
	for i := range g.all {
		for _, era := range bothEras {
			v := g.visitAt(t, i, era, "all")
			for n := range g.all { // each request goes to another replica
				if got := g.at(i+n, v).call("one__t", ""); !strings.Contains(got.body, "called") {
					t.Errorf("%v, replica %d: a call at %d = %d %s", era, i, n, got.status, got.body)
				}
				got := g.at(i+n, v).ask(spec.MethodToolsList, "", "")
				for _, want := range []string{`"old__a"`, `"new__n`, `"one__n`, `"oneold__b"`} {
					if !strings.Contains(got.body, want) || strings.Contains(got.body, "dev.mcpbridge/missing") {
						t.Errorf("%v, replica %d: a list at %d lacks %s: %d %s", era, i, n, want, got.status, got.body)
					}
				}
			}
		}
	}
	for i, p := range g.one {
		p.mu.Lock()
		if n := p.asked[spec.MethodToolsCall] + p.asked[spec.MethodToolsList]; (n > 0) != (i == 1) {
			t.Errorf("the process of replica %d has served %d requests", i, n)
		}
		p.mu.Unlock()
	}
}

// Questions in the middle of a call are answered at any replica: that of a call at the one process,
// of either era, and that of a call which is parked at the replica that was asked.
func TestG19QuestionsAtAnyReplica(t *testing.T) {
	t.Parallel()
	g := newGroupReplicas(t)
	g.old.mu.Lock()
	g.old.handle["tools/call"] = g.olds[0].handle["tools/call"]
	g.old.mu.Unlock()
	for i := range g.all {
		for tool, want := range map[string]string{"new__ask": "Ada", "one__ask": "Ada", "old__a": "Ada", "oneold__b": "Ada"} {
			v := g.visitAt(t, i, spec.Modern, "all")
			first := v.call(tool, "")
			if !strings.Contains(first.body, `"inputRequests"`) {
				t.Errorf("%s at replica %d = %d %s", tool, i, first.status, first.body)
				continue
			}
			answers := first.round(t).retry(map[string]string{"elicitation/create": accept})
			if got := g.at(i+1, v).call(tool, answers); !strings.Contains(got.body, want) {
				t.Errorf("%s of replica %d, answered at another one = %d %s", tool, i, got.status, got.body)
			}
			l := g.visitAt(t, i, spec.Legacy, "all")
			res := g.at(i+1, l).open(spec.MethodToolsCall, tool, `"name":"`+tool+`","arguments":{}`)
			res.want(": who?")
			asked := res.seen[len(res.seen)-1]
			g.at(i+2, l).post(`{"jsonrpc":"2.0","id":` + string(wire.Get([]byte(asked), "id")) + `,"result":` + accept + `}`)
			res.want(want)
		}
	}
}

// Cursors, ids of tasks, and names are the same at all replicas: what one has given another takes.
func TestG19CursorsTasksAndNamesAtAnyReplica(t *testing.T) {
	t.Parallel()
	g := newGroupReplicas(t)
	long := strings.Repeat("long", 20)
	g.old.mu.Lock()
	g.old.handle["tools/list"] = func(c *peerCall) string {
		next := `,"nextCursor":"2"`
		if wire.Get(c.m.Params, "cursor") != nil {
			next = ""
		}
		return `{"tools":[{"name":"` + long + `","inputSchema":{"type":"object"}}]` + next + `}`
	}
	g.old.mu.Unlock()
	var names, tasks []string
	for i := range g.all {
		for _, era := range bothEras {
			v := g.visitAt(t, i, era, "all")
			first := v.ask(spec.MethodToolsList, "", "").result(t)
			_, rest, _ := strings.Cut(string(first), `"name":"old__`)
			name, _, _ := strings.Cut(rest, `"`)
			names = append(names, "old__"+name)
			if got := g.at(i+1, v).ask(spec.MethodToolsList, "", `"cursor":`+string(wire.Get(first, "nextCursor"))); !strings.Contains(got.body, "old__"+name) {
				t.Errorf("%v: a cursor of replica %d at another one = %d %s", era, i, got.status, got.body)
			}
			if got := g.at(i+2, v).call("old__"+name, ""); !strings.Contains(got.body, "of old") {
				t.Errorf("%v: the name %s at another replica = %d %s", era, name, got.status, got.body)
			}
		}
		for _, member := range []string{"new", "one"} {
			v := g.visitAt(t, i, spec.Modern, "all")
			id, _ := wire.GetString(v.call(member+"__task", "").result(t), "taskId")
			tasks = append(tasks, id)
			for n := range g.all {
				if got := g.at(i+n, v).ask(spec.MethodTaskGet, id, `"taskId":`+string(wire.Quote(id))); !strings.Contains(got.body, "working") {
					t.Errorf("task %q of replica %d at %d = %d %s", id, i, i+n, got.status, got.body)
				}
			}
		}
	}
	for _, name := range names {
		if name != names[0] || len(name) != 40 {
			t.Errorf("the long name is %s, and %s", names[0], name)
		}
	}
	if len(tasks) != 6 {
		t.Errorf("tasks %q", tasks)
	}
}

// What is followed of a group at any replica is followed once at each server, and its changes reach
// the clients of all.
func TestG19ReplicasFollowTogether(t *testing.T) {
	t.Parallel()
	g := newGroupReplicas(t)
	var streams []*lines
	for i := range g.all {
		l := g.visitAt(t, i, spec.Modern, "all").open(spec.MethodListen, "", `"notifications":{"resourceSubscriptions":["file:///d"]}`)
		l.want(`"file:///d"`)
		streams = append(streams, l)
	}
	for n := range 3 {
		g.olds[2].push(updated("file:///d"))
		for i, l := range streams {
			if l.want(spec.NotifyResourceUpdated); t.Failed() {
				t.Fatalf("change %d has not reached a client of replica %d", n, i)
			}
		}
	}
	var subscribed []string
	for i, p := range g.olds {
		subscribed = append(subscribed, fmt.Sprint(i, ":", len(p.sent("resources/subscribe"))))
	}
	if got := fmt.Sprint(subscribed); got != "[0:0 1:0 2:1]" {
		t.Errorf("subscriptions at the processes: %s, want one, at the third", got)
	}
}

// The replica with the process of a member ends: another one serves its calls, and clients of the
// group go on.
func TestG19TheProcessMoves(t *testing.T) {
	t.Parallel()
	g := newGroupReplicas(t)
	v, l := g.visitAt(t, 0, spec.Modern, "all"), g.visitAt(t, 0, spec.Legacy, "all")
	for _, c := range []*visitor{v, l} {
		if got := c.call("one__t", ""); !strings.Contains(got.body, "called") {
			t.Fatalf("%v: before = %d %s", c.era, got.status, got.body)
		}
	}
	holder := g.all[1]
	g.drain(t, holder)
	g.end(t, holder)
	for _, c := range []*visitor{v, l} {
		if got := c.call("one__t", ""); !strings.Contains(got.body, "called") || got.status != http.StatusOK {
			t.Errorf("%v: after = %d %s", c.era, got.status, got.body)
		}
	}
}

// Tasks that replicas hold at legacy servers are asked for at any replica of the group: the one that
// holds it answers, whether each of them uses the server or one alone.
func TestG19HeldTasksAtAnyReplica(t *testing.T) {
	t.Parallel()
	g := newGroupReplicas(t, func(p *scriptedPeer) {
		p.capabilities = `{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`
		delete(p.handle, "tools/call")
		p.answer("tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"b","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`)
		p.answer("tools/call", `{"task":{"taskId":"t1","status":"working"}}`)
		p.answer("tasks/get", `{"taskId":"t1","status":"working","statusMessage":"by its server"}`)
	})
	for i := range g.all {
		for _, tool := range []string{"old__a", "oneold__b"} {
			v := g.visitAt(t, i, spec.Modern, "all")
			made := v.call(tool, "")
			id, ok := wire.GetString(made.result(t), "taskId")
			if !ok {
				t.Errorf("%s at replica %d = %d %s, want a task", tool, i, made.status, made.body)
				continue
			}
			for n := range g.all {
				if got := g.at(i+n, v).ask(spec.MethodTaskGet, id, `"taskId":`+string(wire.Quote(id))); !strings.Contains(got.body, "by its server") || !strings.Contains(got.body, id) {
					t.Errorf("task %q of replica %d at %d = %d %s", id, i, (i+n)%len(g.all), got.status, got.body)
				}
			}
		}
	}
}
