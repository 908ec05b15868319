package interop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
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

// paths are where a server is found, by transport. A client whose transport has
// none does not go there.
type paths map[string]string

// A legacySpot is a server where legacy clients find it.
type legacySpot struct {
	name string // in legacy.json
	base string // URL without path
	paths
	// impure servers send what the revision has not; mcpbridge never does.
	impure bool
	// repeats is for server-everything over Streamable HTTP without mcpbridge. SDK 1.32.2
	// takes a stream that ends with an error for one that broke, and resumes it 200 ms
	// later; what the server then sends again are the later messages of all streams.
	repeats bool
}

// TestLegacyDirect takes each legacy client through the round on servers of its
// own era: what fails here is no fault of mcpbridge's.
func TestLegacyDirect(t *testing.T) {
	addr, port := freeAddr(t), freeAddr(t)
	run(t, "http://"+addr+"/admin/subscriptions", 200, nil, "../bin/legacy-go", "-http", addr, "-event-ids")
	_, sse, _ := net.SplitHostPort(port)
	run(t, "http://"+port+"/", 0, []string{"PORT=" + sse}, nodeBinary, everythingNode, "sse")
	legacyRounds(t, "../bin/legacy-direct.txt", []legacySpot{
		{name: "legacy-go", base: "http://" + addr, paths: paths{"http": "/mcp"}},
		{name: "everything-go", base: w.urls["everything-go"], paths: paths{"http": "/"}},
		{name: "everything-http", base: strings.TrimSuffix(w.urls["everything-http"], "/mcp"), paths: paths{"http": "/mcp"}, impure: true, repeats: true},
		{name: "everything-sse", base: "http://" + port, paths: paths{"sse": "/sse"}, impure: true},
	})
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// run starts a program, which ends with the test, and returns when a GET of ready
// has the status, or any if that is 0.
func run(t *testing.T, ready string, status int, env []string, argv ...string) {
	t.Helper()
	p, err := process.Start(filepath.Base(argv[0]), env, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s wrote:\n%s", argv[0], p.Log())
		}
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	if err := p.Ready(ctx, ready, status); err != nil {
		t.Fatal(err)
	}
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
	maps.DeleteFunc(m.Servers, func(name string, _ *Server) bool {
		return !slices.ContainsFunc(spots, func(s legacySpot) bool { return s.name == name })
	})
	var o outcomes
	t.Run("on", func(t *testing.T) {
		for _, s := range spots {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				for _, client := range s.clients(m) { // in turn: what one toggles would reach the other
					t.Run(client, func(t *testing.T) { legacyRoundOn(t, m, s, client, schemas, &o) })
				}
			})
		}
	})
	visits := make(map[string][]string)
	for _, s := range spots {
		visits[s.name] = s.clients(m)
	}
	text, untried := o.table(m, visits)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	if len(untried) > 0 {
		t.Errorf("nobody tried: %q", untried)
	}
}

// clients are those that go to the spot.
func (s *legacySpot) clients(m *Matrix) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(m.Clients)) {
		if s.paths[m.Clients[name].transport()] != "" {
			names = append(names, name)
		}
	}
	return names
}

func (c *Client) transport() string { return cmp.Or(c.Transport, "http") }

// legacyRoundOn takes one client through one column, with a tap in between.
func legacyRoundOn(t *testing.T, m *Matrix, s legacySpot, client string, schemas *tap.Schemas, o *outcomes) {
	between, err := tap.New(s.base, schemas)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(between.Close)
	c := m.Clients[client]
	roots := fmt.Appendf(nil, `{"roots": [{"uri": "file:///%s", "name": "root of %[1]s"}]}`, client)
	target := remote.Target{Transport: c.transport(), URL: between.URL(s.paths[c.transport()]), Capabilities: c.Capabilities, Roots: roots}
	r := &legacyRound{
		remoteClient: startRemote(t, client, target),
		client:       c,
		cut:          func(get bool) int { return between.Cut(&get) },
		resumed:      func() int { return len(between.Resumed()) },
		repeats:      s.repeats,
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
