package interop

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/tap"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// loadLegacy returns the table of the legacy clients: the servers of legacy.json,
// with the cells that matrix.json has for them where it has none of its own.
func loadLegacy() (*Matrix, error) {
	all, err := readMatrix("../matrix.json")
	if err != nil {
		return nil, err
	}
	all.inherit()
	m, err := readMatrix("../legacy.json")
	if err != nil {
		return nil, err
	}
	m.Features = append(slices.Clone(all.Features), m.Features...)
	for name, s := range m.Servers {
		if base := all.Servers[name]; base != nil {
			s.fallBackOn(base)
		}
	}
	m.inherit()
	return m, errors.Join(m.validate(), m.validateClients())
}

// fallBackOn fills in what s has nothing of its own for.
func (s *Server) fallBackOn(base *Server) {
	cells, lacks := maps.Clone(base.Cells), maps.Clone(base.Lacks)
	for f := range s.Cells {
		delete(lacks, f)
	}
	for f := range s.Lacks {
		delete(cells, f)
	}
	maps.Copy(cells, s.Cells)
	maps.Copy(lacks, s.Lacks)
	s.Cells, s.Lacks = cells, lacks
}

// validateClients holds that a cell has steps for each client, or one of them a
// reason.
func (m *Matrix) validateClients() error {
	for client, c := range m.Clients {
		for server, s := range m.Servers {
			for _, f := range m.Features {
				fits := slices.ContainsFunc(s.Cells[f], func(s Step) bool { return s.fits(c.Revision) })
				if !fits && m.lack(client, server, f) == "" {
					return fmt.Errorf("legacy.json: %s, %s: want steps for %s, or a reason", server, f, client)
				}
			}
		}
	}
	return nil
}

// A legacySpot is a server where legacy clients find it.
type legacySpot struct {
	name string // in legacy.json
	base string // URL without path
	path string
	// impure servers send what the revision has not; mcpbridge never does.
	impure bool
}

// TestLegacyDirect takes each legacy client through the round on servers of its
// own era: what fails here is no fault of mcpbridge's.
func TestLegacyDirect(t *testing.T) {
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start("legacy-go", nil, "../bin/legacy-go", "-http", addr, "-event-ids")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(10 * time.Second); err != nil {
			t.Error(err)
		}
	})
	if err := p.Ready(t.Context(), "http://"+addr+"/admin/subscriptions", 200); err != nil {
		t.Fatal(err)
	}
	everything, everythingHTTP := w.urls["everything-go"], w.urls["everything-http"]
	legacyRounds(t, "../bin/legacy-direct.txt", []legacySpot{
		{name: "legacy-go", base: "http://" + addr, path: "/mcp"},
		{name: "everything-go", base: everything, path: "/"},
		{name: "everything-http", base: strings.TrimSuffix(everythingHTTP, "/mcp"), path: "/mcp", impure: true},
	})
}

// legacyRounds takes every legacy client to every spot, and leaves what came of
// it in a file.
func legacyRounds(t *testing.T, file string, spots []legacySpot) {
	m, err := loadLegacy()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := tap.Folder()
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := tap.LoadSchemas(dir)
	if err != nil {
		t.Fatal(err)
	}
	clients := slices.Sorted(maps.Keys(m.Clients))
	maps.DeleteFunc(m.Servers, func(name string, _ *Server) bool {
		return !slices.ContainsFunc(spots, func(s legacySpot) bool { return s.name == name })
	})
	var o outcomes
	t.Run("on", func(t *testing.T) {
		for _, s := range spots {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				for _, client := range clients { // in turn: what one toggles would reach the other
					t.Run(client, func(t *testing.T) { legacyRoundOn(t, m, s, client, schemas, &o) })
				}
			})
		}
	})
	text, untried := o.table(m, clients)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	if len(untried) > 0 {
		t.Errorf("nobody tried: %q", untried)
	}
}

// legacyRoundOn takes one client through one column, with a tap in between.
func legacyRoundOn(t *testing.T, m *Matrix, s legacySpot, client string, schemas *tap.Schemas, o *outcomes) {
	between, err := tap.New(s.base, schemas)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(between.Close)
	c := m.Clients[client]
	roots := fmt.Appendf(nil, `{"roots": [{"uri": "file:///%s", "name": "root of %[1]s"}]}`, client)
	r := &legacyRound{
		remoteClient: startRemote(t, client, remote.Target{Transport: "http", URL: between.URL(s.path), Capabilities: c.Capabilities, Roots: roots}),
		client:       c,
		cut:          func(get bool) int { return between.Cut(&get) },
		resumed:      func() int { return len(between.Resumed()) },
	}
	for _, f := range m.Features {
		if m.lack(client, s.name, f) != "" {
			continue
		}
		steps, err := m.Servers[s.name].steps(f, client, "")
		if err != nil {
			t.Fatal(err)
		}
		steps = slices.DeleteFunc(steps, func(s Step) bool { return !s.fits(c.Revision) })
		problem := ""
		if err := r.cell(t.Context(), steps); err != nil {
			problem = err.Error()
		}
		o.check(t, client, s.name, f, problem)
	}
	if s.impure {
		return
	}
	t.Run("schema", func(t *testing.T) { wantLegacy(t, between, c.Revision) })
}

// wantLegacy holds that all that passed a tap was as the revision has it, and that
// something did.
func wantLegacy(t *testing.T, between *tap.Tap, revision string) {
	for _, problem := range between.Problems() {
		t.Error(problem)
	}
	n := 0
	for _, msg := range between.Messages() {
		if msg.Revision == revision {
			n++
		}
	}
	if n < 10 {
		t.Errorf("the tap saw %d messages of %s, want a round's", n, revision)
	}
}
