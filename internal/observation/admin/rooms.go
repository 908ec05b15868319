package admin

import (
	"context"
	"net/http"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// Rooms tell of single servers, and change what becomes of them, for whoever uses the page. An
// error is for people.
type Rooms interface {
	// ServerRoom returns what is known of a server; nil if there is none of that name, or it is a
	// group. It asks no server.
	ServerRoom(name string) *status.ServerRoom
	// Rates returns those of all servers, and of the clients of one, unless its name is empty.
	Rates(server string) *status.Rates
	// Restart has a server begin anew.
	Restart(server string) error
	// Tasks returns the tasks of a server that are held for clients of the other era and not over, and
	// CancelTask cancels one of them, by its key.
	Tasks(server string) status.Tasks
	CancelTask(ctx context.Context, server, key string) error
	// ToolChanges returns the tools of a server that differ from what was accepted, and
	// AcceptTools accepts some as they were shown. It returns how many.
	ToolChanges(ctx context.Context, server string) ([]status.ToolChange, error)
	AcceptTools(ctx context.Context, server string, tools []status.AcceptedTool) (int, error)
	// LogIn returns the URL at which a person can log in to a server. LogOut deletes that login;
	// revoked says why its tokens were not revoked, and is nil if they were.
	LogIn(ctx context.Context, server string) (url string, err error)
	LogOut(ctx context.Context, server string) (revoked, err error)
}

// A roomAPI serves what there is to see and to do of single servers.
type roomAPI struct {
	*api
	of    Rooms
	lines *live.Lines // nil: none are kept
}

// lists are what a server can list, by the last segment of the path.
var lists = map[string]string{
	"tools": spec.MethodToolsList, "prompts": spec.MethodPromptsList, "resources": spec.MethodResourcesList, "templates": spec.MethodResourcesTemplates,
}

func (a *roomAPI) route(mux *http.ServeMux) {
	for path, serve := range map[string]http.HandlerFunc{
		"GET /api/servers/{name}":          a.server,
		"GET /api/servers/{name}/lines":    a.wrote,
		"GET /api/servers/{name}/changes":  a.changes,
		"GET /api/servers/{name}/tasks":    a.tasks,
		"GET /api/servers/{name}/{list}":   a.list,
		"POST /api/servers/{name}/restart": a.restart,
		"POST /api/servers/{name}/login":   a.login,
		"POST /api/servers/{name}/logout":  a.logout,
		"POST /api/servers/{name}/accept":  a.accept,
		"POST /api/servers/{name}/cancel":  a.cancelTask,
		"GET /api/rates":                   a.rates,
	} {
		mux.Handle(path, a.guard.data(serve))
	}
}

// known reports whether there is a server of the name in the path, and else says so.
func (a *roomAPI) known(w http.ResponseWriter, r *http.Request) (*status.ServerRoom, bool) {
	room := a.of.ServerRoom(r.PathValue("name"))
	if room == nil {
		http.Error(w, "there is no server of this name; /api/servers has all", http.StatusNotFound)
		return nil, false
	}
	room.Lines = a.lines != nil
	return room, true
}

func (a *roomAPI) server(w http.ResponseWriter, r *http.Request) {
	if room, ok := a.known(w, r); ok {
		answer(w, http.StatusOK, room)
	}
}

// wrote serves the last lines that the command has written to its standard error.
func (a *roomAPI) wrote(w http.ResponseWriter, r *http.Request) {
	if _, ok := a.known(w, r); !ok {
		return
	}
	after, _ := strconv.ParseUint(r.FormValue("after"), 10, 64) // 0 for anything else: all
	answer(w, http.StatusOK, struct {
		Lines []live.Line `json:"lines"`
	}{a.lines.After(r.PathValue("name"), after)})
}

// list serves a page of what a server lists to the principal admin.
func (a *roomAPI) list(w http.ResponseWriter, r *http.Request) {
	method := lists[r.PathValue("list")]
	if method == "" {
		http.Error(w, "a server has lines, tasks, changes, tools, prompts, resources and templates", http.StatusNotFound)
		return
	}
	a.ask(w, r, r.PathValue("name"), method, atCursor(r))
}

// tasks serves the tasks of a server that are not over.
func (a *roomAPI) tasks(w http.ResponseWriter, r *http.Request) {
	if _, ok := a.known(w, r); ok {
		answer(w, http.StatusOK, a.of.Tasks(r.PathValue("name")))
	}
}

// cancelTask cancels a task.
func (a *roomAPI) cancelTask(w http.ResponseWriter, r *http.Request) {
	var body struct{ Task string }
	said, err := receive(w, r, maxAsk, &body)
	if !said {
		return
	}
	if err != nil || body.Task == "" {
		http.Error(w, "send an object with task, which is the key of one, as /tasks has it", http.StatusBadRequest)
		return
	}
	if _, ok := a.known(w, r); !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	if err := a.of.CancelTask(ctx, r.PathValue("name"), body.Task); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	answer(w, http.StatusOK, struct {
		Cancelled string `json:"cancelled"`
	}{body.Task})
}

func (a *roomAPI) rates(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, a.of.Rates(r.FormValue("server")))
}

// act has something done to a server, whose name is all that is needed, and serves what that
// returns.
func (a *roomAPI) act(w http.ResponseWriter, r *http.Request, do func(server string) (any, error)) {
	if !isJSON(r) { // no form of another page is
		http.Error(w, "send JSON", http.StatusUnsupportedMediaType)
		return
	}
	if _, ok := a.known(w, r); !ok {
		return
	}
	done, err := do(r.PathValue("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer(w, http.StatusOK, done)
}

// restart has a server begin anew.
func (a *roomAPI) restart(w http.ResponseWriter, r *http.Request) {
	a.act(w, r, func(server string) (any, error) {
		return struct {
			Restarted string `json:"restarted"`
		}{server}, a.of.Restart(server)
	})
}

// login begins a login, and serves where to go on.
func (a *roomAPI) login(w http.ResponseWriter, r *http.Request) {
	a.act(w, r, func(server string) (any, error) {
		url, err := a.of.LogIn(r.Context(), server)
		return struct {
			URL string `json:"url"`
		}{url}, err
	})
}

// logout ends a login.
func (a *roomAPI) logout(w http.ResponseWriter, r *http.Request) {
	a.act(w, r, func(server string) (any, error) {
		out := struct {
			Revoked bool   `json:"revoked"`
			Why     string `json:"why,omitempty"` // not
		}{}
		revoked, err := a.of.LogOut(r.Context(), server)
		if out.Revoked = revoked == nil; !out.Revoked {
			out.Why = revoked.Error()
		}
		return out, err
	})
}

func (a *roomAPI) changes(w http.ResponseWriter, r *http.Request) {
	if _, ok := a.known(w, r); !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	changes, err := a.of.ToolChanges(ctx, r.PathValue("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer(w, http.StatusOK, struct {
		Changes []status.ToolChange `json:"changes"`
	}{changes})
}

// accept accepts changed tools, as they were shown.
func (a *roomAPI) accept(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Tools []status.AcceptedTool `json:"tools"`
	}
	said, err := receive(w, r, maxAsk, &body)
	if !said {
		return
	}
	if err != nil || len(body.Tools) == 0 {
		http.Error(w, "send an object with tools, each with tool and digest, as /changes has them", http.StatusBadRequest)
		return
	}
	if _, ok := a.known(w, r); !ok {
		return
	}
	n, err := a.of.AcceptTools(r.Context(), r.PathValue("name"), body.Tools)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	answer(w, http.StatusOK, struct {
		Accepted int `json:"accepted"`
	}{n})
}
