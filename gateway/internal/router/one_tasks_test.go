package router

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

const tasksEnvelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"}}`

// A task is its principal's at each replica, also at those that have not created it, with one
// question to the engine for each of them.
func TestTasksAreOnesOwnAtEachReplica(t *testing.T) {
	t.Parallel()
	lax := newCredulousPeer(t)
	d := newDeployment(t, 3, func(o *Options) {
		tokens, err := auth.NewTokens([]auth.StaticToken{{Name: alice, Token: tokenOf(alice)}, {Name: bob, Token: tokenOf(bob)}})
		if err != nil {
			t.Fatal(err)
		}
		o.Auth = tokens
		o.Servers = []ServerOptions{{Name: "peer", Open: func(c mcp.Changes) (mcp.Back, error) {
			return modernback.New(modernback.Options{Options: upstream.Options{Name: "peer", URL: lax.URL, Changes: c, Logger: o.Logger, Settings: settings.Server{Linger: time.Millisecond},
				ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
		}}}
	})
	ask := func(r *replica, who, method, name, rest string) answer {
		h := modernHeaders(method, name)
		h.Set("Authorization", "Bearer "+tokenOf(who))
		return r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+tasksEnvelope+`,`+rest+`}}`, h)
	}
	create := func(r *replica) {
		t.Helper()
		if a := ask(r, alice, "tools/call", "task", `"name":"task","arguments":{}`); !strings.Contains(a.body, `"taskId":"task-`) {
			t.Fatalf("tools/call = %+v", a)
		}
	}
	create(d.all[0])
	before := d.Reads()
	for range 3 {
		for i, r := range d.all {
			if a := ask(r, bob, "tasks/get", "task-1", `"taskId":"task-1"`); strings.Contains(a.body, "secret") {
				t.Errorf("bob reads alice's task at %d: %s", i, a.body)
			}
			if a := ask(r, alice, "tasks/get", "task-1", `"taskId":"task-1"`); !strings.Contains(a.body, "secret") {
				t.Errorf("alice does not read her task at %d: %s", i, a.body)
			}
		}
	}
	if n := d.Reads() - before; n > 4 { // by bob and by alice, at two replicas
		t.Errorf("the engine was asked %d times", n)
	}
	create(d.all[0])
	d.SetAway(true)
	for _, r := range d.all {
		eventually(t, func() bool { return !r.peers.View().Away.IsZero() })
	}
	if a := ask(d.all[1], bob, "tasks/get", "task-2", `"taskId":"task-2"`); strings.Contains(a.body, "secret") || !strings.Contains(a.body, "whose task this is") {
		t.Errorf("while the engine is away, bob reads %s", a.body)
	}
	if a := ask(d.all[0], alice, "tasks/get", "task-2", `"taskId":"task-2"`); !strings.Contains(a.body, "secret") {
		t.Errorf("while the engine is away, alice reads %s", a.body)
	}
}
