package router

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// An auditLine is what tests look at of a line of the audit log.
type auditLine struct {
	Principal, Server, Era, Method, Kind, Name, Decision, Outcome, Client string
	Address, Request, Trace, Reason, Session                              string
	Rule, Times                                                           int
}

func (l auditLine) String() string {
	return fmt.Sprintf("%s %s %s %s %s %d %s %s", l.Principal, l.Era, l.Method, l.Kind+":"+l.Name, l.Decision, l.Rule, l.Outcome, l.Client)
}

const auditTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

// Each request is one line, which has nothing of its arguments, in both eras, and in
// sessions that are passed on.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	for _, peer := range policyPeers {
		t.Run(peer.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit")
			log, err := audit.Open(audit.Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			r, _ := peer.rig(t, func(o *Options) {
				o.Audit = log
				o.Servers[0].Access = access.Options{Policy: openOnly(), Audit: log, Limiter: policy.NewLimiter(policy.Rates{Tools: map[string]policy.Rate{"open": {PerSecond: 0.01, Burst: 2}}})}
				o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get("X-User")), nil })
			})
			const private = `"arguments":{"card":"s3cret"}`
			session := r.enter(t)
			legacy := func(method, params string) {
				r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`, legacyHeaders(session))
			}
			legacy("ping", "")
			legacy("tools/call", `"name":"open",`+private)
			legacy("tools/call", `"name":"other",`+private)
			legacy("resources/read", `"uri":"file:///open/a?token=s3cret"`)
			legacy("resources/subscribe", `"uri":"file:///open/a","_meta":{"traceparent":"00-`+auditTrace+`-00f067aa0ba902b7-01"}`)
			r.call(t, "1", "tools/call", "open", `"name":"open",`+private)
			r.call(t, "1", "tools/call", "open", `"name":"open",`+private)
			f := r.listen(t, "1", `{"toolsListChanged":true}`)
			f.next()
			f.res.Body.Close()
			r.send(t, http.MethodDelete, "", legacyHeaders(session))
			bridgetest.Eventually(t, "the ends are recorded", func() bool {
				text, _ := os.ReadFile(path)
				return strings.Count(string(text), `"method":"end"`) == 2
			})
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "s3cret") || strings.Contains(string(text), "card") {
				t.Errorf("the log has arguments:\n%s", text)
			}
			var got, ended []string
			for line := range strings.Lines(string(text)) {
				var l auditLine
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				if !strings.HasPrefix(l.Address, "192.0.2.1:") && !strings.HasPrefix(l.Address, "127.0.0.1:") && l.Address != "203.0.113.7" {
					t.Errorf("no address: %s", line)
				}
				if l.Request == "" && l.Method != audit.MethodEnd {
					t.Errorf("no id of the request: %s", line)
				}
				if l.Method == audit.MethodEnd {
					ended = append(ended, l.Kind+" "+l.Session+" "+l.Reason)
					continue
				}
				if l.Method == "resources/subscribe" && l.Trace != auditTrace {
					t.Errorf("no trace: %s", line)
				}
				got = append(got, l.String())
			}
			want := []string{
				"anonymous legacy initialize : allow 2 ok old/1",
				"anonymous legacy tools/call tool:open allow 2 ok old/1",
				"anonymous legacy tools/call tool:other deny 0 refused old/1",
				"anonymous legacy resources/read resource:file:///open/a?… allow 2 ok old/1",
				"anonymous legacy resources/subscribe resource:file:///open/a allow 2 ok old/1",
				"anonymous modern tools/call tool:open allow 2 ok c/0",
				"anonymous modern tools/call tool:open limit 2 refused c/0",
				"anonymous modern subscriptions/listen : allow 2 ok c/0",
			}
			if text := strings.Join(ended, "\n"); !strings.Contains(text, "its client ended it") || !strings.Contains(text, "stream ") || !strings.Contains(text, "client left") {
				t.Errorf("ends:\n%s", text)
			}
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("lines:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

// A tool whose definition has changed is neither shown nor called, in both eras and in
// sessions that are passed on.
func TestPinnedTools(t *testing.T) {
	t.Parallel()
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			r := newRig(t, func(o *Options) {
				pins, err := pin.Open(pin.Options{Store: pin.Folder(t.TempDir()), Server: "peer", Refuse: true})
				if err != nil {
					t.Fatal(err)
				}
				o.Servers[0].Access = access.Options{Pins: pins}
			})
			r.peer.answer("tools/call", `{"content":[]}`)
			ask := d.open(t, r)
			list := func(tools string) string {
				r.peer.answer("tools/list", `{"tools":[`+tools+`]}`)
				return ask(d.request("tools/list", ""))
			}
			const good, evil, late = `{"name":"a","description":"good","inputSchema":{"type":"object"}}`, `{"name":"a","description":"evil","inputSchema":{"type":"object"}}`, `{"name":"late","inputSchema":{"type":"object"}}`
			if got := list(good); !strings.Contains(got, "good") {
				t.Errorf("first list: %s", got)
			}
			if got := list(evil + "," + late); strings.Contains(got, "evil") || strings.Contains(got, "late") || !strings.Contains(got, `"tools":[]`) {
				t.Errorf("changed list: %s", got)
			}
			for _, name := range []string{"a", "late", `\u0061`} {
				if got := ask(d.request("tools/call", `"name":"`+name+`"`)); !strings.Contains(got, "mcpbridge pin peer") {
					t.Errorf("call of %s: %s", name, got)
				}
			}
			if got := list(good); !strings.Contains(got, "good") {
				t.Errorf("the accepted list again: %s", got)
			}
			if got := ask(d.request("tools/call", `"name":"a"`)); !strings.Contains(got, "content") {
				t.Errorf("call of what was accepted: %s", got)
			}
		})
	}
}

// What is kept of a server is filtered for each of its readers.
func TestPolicyBeforeTheCache(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, func(o *Options) {
		o.Servers[0].Settings.Isolation = settings.IsolateNothing
		guarded(openOnly())(o)
	})
	r.peer.answer("tools/list", policyAnswers["tools/list"])
	list := func(user string) string {
		h := modernHeaders("tools/list", "")
		h.Set("X-User", user)
		return r.send(t, http.MethodPost, modernBody("1", "tools/list", ""), h).body
	}
	for _, user := range []string{"root", "eve", "root"} {
		if got := list(user); strings.Contains(got, "secret") != (user == "root") || !strings.Contains(got, `"cacheScope":"private"`) {
			t.Errorf("%s is shown %s", user, got)
		}
	}
	if n := len(r.peer.sent("tools/list")); n != 1 {
		t.Errorf("the server was asked %d times, want once", n)
	}
}
