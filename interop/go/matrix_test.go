package interop

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Matrix is matrix.json, with or without legacy.json: what the servers have, and
// what proves it.
type Matrix struct {
	Features []string           // the rows, in order
	Servers  map[string]*Server // by the name they have in mcpbridge's config
	Clients  map[string]*Client // those that can't do everything
}

// Client is a client of one revision.
type Client struct {
	Revision     string
	Transport    string // of remote.Target; http if empty
	Capabilities json.RawMessage
	NoErrorData  bool              // the SDK keeps an error's data to itself
	Lacks        map[string]string // why it can't try a feature, by feature or "server, feature"
}

// Server is a column of the table.
type Server struct {
	Like  string            // a server whose lacks and cells it has where its own don't differ
	Each  bool              // every client has one of its own, NAME-CLIENT: what one does shows for good
	Lacks map[string]string // why a feature has no cell, by feature
	Cells map[string][]Step // what proves a feature, by feature
}

// Step is one thing a client does and what it expects.
type Step struct {
	Op     string // discover, list, pages, call, read, prompt, complete, watch; and those of legacyOps
	Params json.RawMessage
	Want   any // a pattern for the result (see package match)
	Error  any // a pattern for {code, message} of a JSON-RPC error that is expected instead

	// For list and pages: which list, and the exact names (URIs for
	// resources, in any order), the number of items or of pages.
	Of    string
	Names []string
	Count int
	Pages int

	// How often to take the step, with {n} counting from 0; 0 means once.
	Times int

	// For call: the progress notifications expected, in order, and those that the
	// server sends together with the result (TypeScript's SDK has forgotten the call
	// by then if one read brings both); the log level asked for; the log messages
	// expected, in order, or patterns of which each must match one.
	Progress []any
	Last     []any
	Log      string
	Messages []any
	Some     []any

	// For watch: the resource or the list kind listened to; what makes it
	// change, once or until the change was heard.
	URI     string
	Trigger *Step
	Once    bool

	// For legacy clients: the method of a request; the answers to questions, by
	// method, and a pattern for the questions, {method, params} each; what is
	// tried until it succeeds, before and after (see legacyOps); another URI.
	Method        string
	Answers       map[string]json.RawMessage
	Asked         any
	Before, Until *Step
	Other         string

	// The step is for clients whose revision is not older, or is older.
	Since, Unless string
}

// fits reports whether the step is for a client of the revision.
func (s *Step) fits(revision string) bool {
	return revision >= s.Since && (s.Unless == "" || revision < s.Unless)
}

// empty reports whether the step would be content with anything.
func (s Step) empty() bool {
	return s.Want == nil && s.Error == nil && s.Names == nil && s.Pages == 0 && !slices.Contains([]string{"watch", "unwatch", "gap", "cancel"}, s.Op)
}

func loadMatrix() (*Matrix, error) {
	m, err := readMatrix("../matrix.json")
	if err != nil {
		return nil, err
	}
	m.inherit()
	return m, m.validate()
}

func readMatrix(file string) (*Matrix, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m := new(Matrix)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// inherit fills in the columns that are like another.
func (m *Matrix) inherit() {
	for _, s := range m.Servers {
		if s.Like == "" {
			continue
		}
		own := *s
		*s = Server{Each: own.Each, Lacks: maps.Clone(m.Servers[s.Like].Lacks), Cells: maps.Clone(m.Servers[s.Like].Cells)}
		for f, why := range own.Lacks {
			s.Lacks[f] = why
			delete(s.Cells, f)
		}
		for f, steps := range own.Cells {
			s.Cells[f] = steps
			delete(s.Lacks, f)
		}
	}
}

// steps returns the steps of a cell with the placeholders {client} and {dir}
// filled in.
func (s *Server) steps(feature, client, dir string) ([]Step, error) {
	text, err := json.Marshal(s.Cells[feature])
	if err != nil {
		return nil, err
	}
	filled := strings.NewReplacer("{client}", client, "{dir}", dir).Replace(string(text))
	var steps []Step
	if err := json.Unmarshal([]byte(filled), &steps); err != nil {
		return nil, err
	}
	return repeat(steps), nil
}

// repeat writes out the steps that are to be taken several times.
func repeat(steps []Step) []Step {
	var all []Step
	for _, s := range steps {
		for n := range max(s.Times, 1) {
			one := s
			one.Params = bytes.ReplaceAll(s.Params, []byte("{n}"), []byte(strconv.Itoa(n)))
			all = append(all, one)
		}
	}
	return all
}

// lack says why there is nothing to try, or "".
func (m *Matrix) lack(client, server, feature string) string {
	if why := m.Servers[server].Lacks[feature]; why != "" {
		return why
	}
	if c := m.Clients[client]; c != nil {
		return cmp.Or(c.Lacks[feature], c.Lacks[server+", "+feature])
	}
	return ""
}

// at returns the name under which a client finds the server.
func (s *Server) at(name, client string) string {
	if s.Each {
		return name + "-" + client
	}
	return name
}

// validate holds that every cell is filled or has a reason, and never both.
func (m *Matrix) validate() error {
	for name, s := range m.Servers {
		for _, f := range m.Features {
			if (len(s.Cells[f]) > 0) == (s.Lacks[f] != "") {
				return fmt.Errorf("matrix.json: %s, %s: want either steps or a reason", name, f)
			}
		}
		for f, steps := range s.Cells {
			if !slices.Contains(m.Features, f) {
				return fmt.Errorf("matrix.json: %s: unknown feature %q", name, f)
			}
			if slices.ContainsFunc(steps, Step.empty) {
				return fmt.Errorf("matrix.json: %s, %s: a step that expects nothing", name, f)
			}
		}
		for f := range s.Lacks {
			if !slices.Contains(m.Features, f) {
				return fmt.Errorf("matrix.json: %s: unknown feature %q", name, f)
			}
		}
	}
	return nil
}

// TestEveryCellHasAReason proves that a hole in the table is an error.
func TestEveryCellHasAReason(t *testing.T) {
	steps := map[string][]Step{"prompt": {{Op: "prompt", Want: "x"}}}
	for _, tt := range []struct {
		name string
		s    Server
		ok   bool
	}{
		{"steps", Server{Cells: steps}, true},
		{"reason", Server{Lacks: map[string]string{"prompt": "has none"}}, true},
		{"nothing", Server{}, false},
		{"a step without an expectation", Server{Cells: map[string][]Step{"prompt": {{Op: "prompt"}}}}, false},
		{"empty reason", Server{Lacks: map[string]string{"prompt": ""}}, false},
		{"both", Server{Cells: steps, Lacks: map[string]string{"prompt": "has none"}}, false},
		{"unknown row", Server{Cells: steps, Lacks: map[string]string{"dance": "has none"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := Matrix{Features: []string{"prompt"}, Servers: map[string]*Server{"x": &tt.s}}
			if err := m.validate(); (err == nil) != tt.ok {
				t.Errorf("validate() = %v, want ok = %v", err, tt.ok)
			}
		})
	}
}

// by returns that all clients try all servers.
func (m *Matrix) by(clients []string) map[string][]string {
	visits := make(map[string][]string)
	for _, s := range m.names() {
		visits[s] = clients
	}
	return visits
}

func (m *Matrix) names() []string {
	var names []string
	for name := range m.Servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
