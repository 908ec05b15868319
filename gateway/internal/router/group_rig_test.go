package router

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// A groupRig is a gateway whose group "all" has a server of each era, "old" and "new".
type groupRig struct {
	*rig
	old  *scriptedPeer
	new  *credulousPeer
	opts Options
}

// newGroupRig returns a groupRig. Its servers are the first two of the options, and the group is
// the third one. change may be nil.
func newGroupRig(t *testing.T, change func(*Options)) *groupRig {
	r := &groupRig{old: newPeer(t), new: newCredulousPeer(t)}
	r.rig = newRig(t, func(o *Options) {
		o.Servers = []ServerOptions{
			{Name: "old", Open: func(c mcp.Changes) (mcp.Back, error) {
				return legacyback.New(legacyback.Options{Options: memberOptions("old", r.old.URL, o, c)})
			}},
			{Name: "new", Open: modernMember("new", r.new, o)},
			{Name: "all", Group: groupOf("old", "new")},
		}
		if change != nil {
			change(o)
		}
		r.opts = *o
	})
	t.Cleanup(r.old.CloseClientConnections)
	t.Cleanup(r.new.CloseClientConnections)
	r.old.answer("tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`)
	r.old.answer("tools/call", say("of old"))
	return r
}

// modernMember returns what opens the back of a modern server.
func modernMember(name string, p *credulousPeer, o *Options) func(mcp.Changes) (mcp.Back, error) {
	return func(c mcp.Changes) (mcp.Back, error) {
		return modernback.New(modernback.Options{Options: memberOptions(name, p.URL, o, c)})
	}
}

func memberOptions(name, url string, o *Options, c mcp.Changes) upstream.Options {
	return upstream.Options{Name: name, URL: url, Changes: c, Logger: o.Logger, Settings: settings.Server{Linger: time.Millisecond},
		ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}
}

func groupOf(members ...string) *group.Options {
	o := &group.Options{ServerInfo: []byte(`{"name":"all","version":"1"}`), Patience: time.Minute, StartPatience: time.Minute}
	for _, name := range members {
		o.Members = append(o.Members, group.MemberOptions{Name: name, Prefix: names.Prefix(name)})
	}
	return o
}

// A visitor is a client of a server or a group, of either era.
type visitor struct {
	r            *rig
	t            *testing.T
	era          spec.Era
	path         string
	capabilities string
	who          string // its principal; empty for none
	session      string // of a legacy one
	ids          int
}

// visit returns a client of a server, which can be asked anything. A legacy one has opened a
// session.
func (r *rig) visit(t *testing.T, era spec.Era, server string) *visitor {
	t.Helper()
	return r.visitAs(t, era, server, "")
}

// visitAs returns a client of a principal.
func (r *rig) visitAs(t *testing.T, era spec.Era, server, who string) *visitor {
	t.Helper()
	v := &visitor{r: r, t: t, era: era, path: "/mcp/" + server, capabilities: allQuestions, who: who}
	if era == spec.Legacy {
		got := v.post(strings.Replace(hello, `"capabilities":{}`, `"capabilities":`+v.capabilities, 1))
		if v.session = got.header.Get("Mcp-Session-Id"); v.session == "" {
			t.Fatalf("initialize = %d %s", got.status, got.body)
		}
		v.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return v
}

func (v *visitor) headers(method, name string) http.Header {
	h := modernHeaders(method, name)
	if v.era == spec.Legacy {
		h = legacyHeaders(v.session)
	}
	if v.who != "" {
		h.Set(whoHeader, v.who)
		h.Set("Authorization", "Bearer "+tokenOf(v.who))
	}
	return h
}

// post sends a message of a legacy client.
func (v *visitor) post(text string) answer {
	v.t.Helper()
	return v.r.sendTo(v.t, http.MethodPost, v.path, text, "", v.headers("", ""))
}

// body returns the text of a request.
func (v *visitor) body(method, rest string) string {
	v.ids++
	id := strconv.Itoa(v.ids)
	if v.era == spec.Legacy {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + rest + `}}`
	}
	return askableBody(id, method, v.capabilities, rest)
}

// ask sends a request about name, and returns its answer. rest are its params.
func (v *visitor) ask(method, name, rest string) answer {
	v.t.Helper()
	return v.r.sendTo(v.t, http.MethodPost, v.path, v.body(method, rest), "", v.headers(method, name))
}

// open sends a request, and returns its response as it comes.
func (v *visitor) open(method, name, rest string) *lines {
	v.t.Helper()
	return newLines(v.t, v.r.openAt(v.t, http.MethodPost, v.path, v.body(method, rest), v.headers(method, name)))
}

// call calls a tool. more are further params.
func (v *visitor) call(tool, more string) answer {
	v.t.Helper()
	return v.ask(spec.MethodToolsCall, tool, `"name":"`+tool+`","arguments":{"n":1}`+more)
}

var bothEras = []spec.Era{spec.Modern, spec.Legacy}
