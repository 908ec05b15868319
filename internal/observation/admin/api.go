package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// maxAsk bounds the body of a request for a tool, and askTime how long that may take.
const (
	maxAsk  = 1 << 20
	askTime = 10 * time.Minute
)

// An api serves what the page shows, as JSON.
type api struct {
	opts  Options
	guard *guard
	state *live.State
	began time.Time
	tries atomic.Int64 // requests to endpoints in flight
}

func newAPI(o Options, g *guard) *api {
	a := &api{opts: o, guard: g, began: time.Now()}
	a.state = live.NewState(func() any { return a.full(false) })
	return a
}

func (a *api) route(mux *http.ServeMux) {
	get := func(path string, of func(*fullState) any) {
		mux.Handle("GET /api/"+path, a.guard.data(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, of(a.full(true)))
		})))
	}
	get("state", func(s *fullState) any { return s })
	get("servers", func(s *fullState) any { return s.Servers })
	get("clients", func(s *fullState) any { return s.Clients })
	get("follows", func(s *fullState) any { return s.Follows })
	get("questions", func(s *fullState) any { return s.Questions })
	get("quirks", func(s *fullState) any { return s.Quirks })
	get("groups", func(s *fullState) any { return groupsOf(s.Servers) })
	mux.Handle("GET /api/groups/{name}", a.guard.data(http.HandlerFunc(a.room)))
	mux.Handle("GET /api/calls", a.guard.data(http.HandlerFunc(a.calls)))
	mux.Handle("GET /api/calls/{id}", a.guard.data(http.HandlerFunc(a.call)))
	mux.Handle("GET /api/live", a.guard.data(&live.Socket{Feed: a.opts.Feed, State: a.state, Allows: a.guard.allows}))
	mux.Handle("GET /api/tools", a.guard.data(http.HandlerFunc(a.tools)))
	mux.Handle("POST /api/call", a.guard.data(http.HandlerFunc(a.callTool)))
	mux.Handle("/api/mcp/{server}", a.guard.data(http.HandlerFunc(a.try)))
	mux.Handle("GET /api/logins", a.guard.data(http.HandlerFunc(a.logins)))
	mux.Handle("POST /api/logout", a.guard.data(http.HandlerFunc(a.endLogins)))
}

// A fullState is all that is known, but for what passes.
type fullState struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	*status.Snapshot
	Reload    any  `json:"reload,omitempty"`
	CanReload bool `json:"can_reload"`
	Bodies    bool `json:"bodies"`
}

// full returns the state; timed if it is to have the time.
func (a *api) full(timed bool) *fullState {
	s := &fullState{Version: a.opts.Version, Started: a.began, Snapshot: a.opts.Gateway.Status(), CanReload: a.opts.Reload != nil, Bodies: a.opts.Feed.Bodies()}
	if !timed {
		s.Time = time.Time{}
	}
	if a.opts.LastReload != nil {
		s.Reload = a.opts.LastReload()
	}
	return s
}

// groupsOf returns those of servers that are groups.
func groupsOf(servers []status.Server) []status.Server {
	groups := []status.Server{}
	for i := range servers {
		if servers[i].Members != nil {
			groups = append(groups, servers[i])
		}
	}
	return groups
}

// room serves what is known of a group.
func (a *api) room(w http.ResponseWriter, r *http.Request) {
	room := a.opts.Gateway.Room(r.PathValue("name"))
	if room == nil {
		http.Error(w, "there is no group of this name; /api/groups has all", http.StatusNotFound)
		return
	}
	answer(w, http.StatusOK, room)
}

// calls serves the last calls. They are observed from the first request for them on.
func (a *api) calls(w http.ResponseWriter, _ *http.Request) {
	a.opts.Feed.Glance()
	answer(w, http.StatusOK, struct {
		Calls   []*live.Call `json:"calls"`
		Skipped uint64       `json:"skipped"`
	}{a.opts.Feed.Calls(), a.opts.Feed.Skipped()})
}

func (a *api) call(w http.ResponseWriter, r *http.Request) {
	c := a.opts.Feed.Call(r.PathValue("id"))
	if c == nil {
		http.Error(w, "no such call is kept: only the last ones are, and only while somebody looks", http.StatusNotFound)
		return
	}
	answer(w, http.StatusOK, c)
}

// tools serves a page of a server's tools.
func (a *api) tools(w http.ResponseWriter, r *http.Request) {
	a.ask(w, r, r.FormValue("server"), "tools/list", atCursor(r))
}

// atCursor returns the params of a request for a page of a list.
func atCursor(r *http.Request) json.RawMessage {
	cursor := r.FormValue("cursor")
	if cursor == "" {
		return json.RawMessage("{}")
	}
	text, _ := json.Marshal(cursor) // a string always encodes
	return json.RawMessage(`{"cursor":` + string(text) + `}`)
}

// callTool calls a tool on behalf of the principal admin.
func (a *api) callTool(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Server, Tool string
		Arguments    json.RawMessage
	}
	said, err := receive(w, r, maxAsk, &body)
	if !said {
		return
	}
	if err != nil || body.Tool == "" || len(body.Arguments) > 0 && body.Arguments[0] != '{' {
		http.Error(w, "send an object with server, tool, and arguments, which is an object", http.StatusBadRequest)
		return
	}
	params, err := json.Marshal(struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}{body.Tool, body.Arguments})
	if err != nil {
		http.Error(w, "the arguments are not JSON", http.StatusBadRequest)
		return
	}
	a.ask(w, r, body.Server, "tools/call", params)
}

// ask sends a request to a server, and serves its result, or why there is none.
func (a *api) ask(w http.ResponseWriter, r *http.Request, server, method string, params json.RawMessage) {
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	result, err := a.opts.Gateway.Ask(ctx, server, method, params)
	if err != nil {
		answer(w, http.StatusOK, struct {
			Error string `json:"error"`
		}{err.Error()})
		return
	}
	answer(w, http.StatusOK, struct {
		Result json.RawMessage `json:"result"`
	}{result})
}
