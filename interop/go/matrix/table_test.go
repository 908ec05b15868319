package matrix

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// steps are what a client does in a cell, in order.
var steps = []string{"connect", "list", "call", "read", "prompt", "notice"}

// A Table is table.json.
type Table struct {
	Transports map[string]string // titles, by the name they have in the rest
	Clients    map[string]*Client
	Servers    map[string]*Server
	Except     []Except // cells and steps that can't be, beyond what the others lack
	Quirks     []Quirk  // what mcpbridge meets in cells: in all others it is nothing
}

// A Client is a row.
type Client struct {
	Title     string
	Argv      []string          // the program, under remote control
	Revisions map[string]string // what it negotiates with mcpbridge, by front
	Lacks     map[string]string // why it has no such front
	Hasty     string            // why a change has to be made more than once before it hears of it; empty if it hasn't
}

// A Server is a column.
type Server struct {
	Title string
	Backs map[string]Back   // how it is run, by back
	Lacks map[string]string // why it has no such back, or nothing to show in a step

	Info               any      // a pattern for the serverInfo that connect brings
	Tools              []string // the names of all its tools
	Call, Read, Prompt *Asking
	Notice             *Notice
}

// A Back is how a server is run. In all strings {NAME} is filled in: see world.
type Back struct {
	Argv []string
	Env  map[string]string
	Path string // of its URL, unless the back is stdio
	// Linger is how long mcpbridge keeps what nobody wants any more; empty means as
	// long as it does by default. Clients that share one process must not outstay
	// each other: what one of them leaves is gone for all.
	Linger string
}

// Asking is a request, and a pattern for its result (see package match). {cell}
// is filled in with a word of the cell's own, {dir} with the folder of the server.
type Asking struct {
	Params json.RawMessage
	Want   any
}

// A Notice is what a client hears of: an update of a resource that it subscribed
// to, or a change of a list. It comes after a call of Trigger, or by itself.
type Notice struct {
	URI, Of string
	Trigger *Asking
}

// An Except says why a step can't be, or with no step why cells can't. What is
// empty means any.
type Except struct {
	Client, Front, Server, Back, Step string
	Why                               string
}

// A Cell is one client on one server, over one transport on either side.
type Cell struct{ Client, Front, Server, Back string }

func (c Cell) String() string { return c.Client + "/" + c.Server + "/" + c.Front + ">" + c.Back }

func (e *Except) covers(c Cell, step string) bool {
	fits := func(pattern, s string) bool { return pattern == "" || pattern == s }
	return fits(e.Client, c.Client) && fits(e.Front, c.Front) && fits(e.Server, c.Server) && fits(e.Back, c.Back) && e.Step == step
}

func loadTable(file string) (*Table, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t := new(Table)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(t); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := t.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// fronts are a client's, in order.
func (c *Client) fronts() []string { return slices.Sorted(maps.Keys(c.Revisions)) }

// backs are a server's, in order.
func (s *Server) backs() []string { return slices.Sorted(maps.Keys(s.Backs)) }

// without says why a step can't be tried in a cell, or, with no step, the cell.
func (t *Table) without(c Cell, step string) string {
	for _, e := range t.Except {
		if e.covers(c, step) {
			return e.Why
		}
	}
	return t.Servers[c.Server].Lacks[step]
}

// pairs returns the cells of a client with a server that can be tried.
func (t *Table) pairs(client, server string) (cells []Cell) {
	for _, front := range t.Clients[client].fronts() {
		for _, back := range t.Servers[server].backs() {
			c := Cell{client, front, server, back}
			if t.without(c, "") == "" {
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// all returns every cell that can be tried, by client.
func (t *Table) all() map[string][]Cell {
	plan := make(map[string][]Cell)
	for _, client := range t.clients() {
		for _, server := range t.servers() {
			plan[client] = append(plan[client], t.pairs(client, server)...)
		}
	}
	return plan
}

// once returns one cell for each client with each server: always one whose
// transports were used least so far, by this client and on this server.
func (t *Table) once() map[string][]Cell {
	plan := make(map[string][]Cell)
	used := make(map[[2]string]int)
	for _, client := range t.clients() {
		for _, server := range t.servers() {
			pairs := t.pairs(client, server)
			if len(pairs) == 0 {
				continue
			}
			least := slices.MinFunc(pairs, func(a, b Cell) int {
				return cmp.Compare(used[[2]string{client, a.Front}]+used[[2]string{server, a.Back}],
					used[[2]string{client, b.Front}]+used[[2]string{server, b.Back}])
			})
			used[[2]string{client, least.Front}]++
			used[[2]string{server, least.Back}]++
			plan[client] = append(plan[client], least)
		}
	}
	return plan
}

func (t *Table) clients() []string    { return slices.Sorted(maps.Keys(t.Clients)) }
func (t *Table) servers() []string    { return slices.Sorted(maps.Keys(t.Servers)) }
func (t *Table) transports() []string { return slices.Sorted(maps.Keys(t.Transports)) }

// validate holds that everything is there or has a reason, and never both.
func (t *Table) validate() error {
	var errs []error
	for name, c := range t.Clients {
		errs = append(errs, t.stated(name, t.transports(), func(f string) bool { return c.Revisions[f] != "" }, c.Lacks))
	}
	for name, s := range t.Servers {
		has := func(what string) bool {
			_, back := s.Backs[what]
			return back || what == "connect" && s.Info != nil || what == "list" && s.Tools != nil || what == "call" && s.Call.judges() ||
				what == "read" && s.Read.judges() || what == "prompt" && s.Prompt.judges() || what == "notice" && s.Notice != nil
		}
		errs = append(errs, t.stated(name, append(t.transports(), steps...), has, s.Lacks))
	}
	for i := range t.Except {
		errs = append(errs, t.needed(&t.Except[i]))
	}
	return errors.Join(errs...)
}

// judges reports whether there is something to ask, and an answer to it.
func (a *Asking) judges() bool { return a != nil && a.Params != nil && a.Want != nil }

// A Quirk is one of docs/quirks.md that is met in the cells that an exception of the same members is for.
type Quirk struct {
	Except
	Quirk string
}

// quirks returns the quirks that are met in a cell, sorted.
func (t *Table) quirks(c Cell) (names []string) {
	for i := range t.Quirks {
		if t.Quirks[i].covers(c, "") {
			names = append(names, t.Quirks[i].Quirk)
		}
	}
	slices.Sort(names)
	return names
}

// stated holds that each of all is there, or lacking with a reason, and that
// nothing else is.
func (t *Table) stated(name string, all []string, has func(string) bool, lacks map[string]string) error {
	for _, what := range all {
		if has(what) == (strings.TrimSpace(lacks[what]) != "") {
			return fmt.Errorf("%s, %s: want either what it takes or a reason", name, what)
		}
	}
	for what := range lacks {
		if !slices.Contains(all, what) {
			return fmt.Errorf("%s lacks %q, which is no transport or step", name, what)
		}
	}
	return nil
}

// needed holds that an exception has a reason, and cells that would be tried if
// it were not there.
func (t *Table) needed(e *Except) error {
	if strings.TrimSpace(e.Why) == "" {
		return fmt.Errorf("the exception %+v has no reason", *e)
	}
	for client, c := range t.Clients {
		for server, s := range t.Servers {
			for _, front := range c.fronts() {
				for _, back := range s.backs() {
					known := e.Step == "" || slices.Contains(steps, e.Step) && s.Lacks[e.Step] == ""
					if known && e.covers(Cell{client, front, server, back}, e.Step) {
						return nil
					}
				}
			}
		}
	}
	return fmt.Errorf("the exception %+v is for cells that there are not", *e)
}
