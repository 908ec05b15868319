package matrix

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the short form of the table into docs/compatibility.md")

// TestTable proves that a hole in the table is an error.
func TestTable(t *testing.T) {
	for _, tt := range []struct {
		name string
		spot func(*Table)
		want string // in the error; empty if there is none
	}{
		{"nothing changed", func(*Table) {}, ""},
		{"a transport of a client gone", func(t *Table) { delete(t.Clients["c"].Revisions, "http") }, "c, http"},
		{"with a reason", func(t *Table) {
			delete(t.Clients["c"].Revisions, "http")
			t.Clients["c"].Lacks = map[string]string{"http": "it is old"}
		}, ""},
		{"both", func(t *Table) { t.Clients["c"].Lacks = map[string]string{"http": "it is old"} }, "c, http"},
		{"a transport of a server gone", func(t *Table) { delete(t.Servers["s"].Backs, "ws") }, "s, ws"},
		{"with a blank reason", func(t *Table) {
			delete(t.Servers["s"].Backs, "ws")
			t.Servers["s"].Lacks["ws"] = " "
		}, "s, ws"},
		{"a step gone", func(t *Table) { t.Servers["s"].Tools = nil }, "s, list"},
		{"a step that expects nothing", func(t *Table) { t.Servers["s"].Call.Want = nil }, "s, call"},
		{"a lack of what nobody has", func(t *Table) { t.Servers["s"].Lacks["dance"] = "it is shy" }, "dance"},
		{"an exception", func(t *Table) { t.Except = []Except{{Front: "ws", Back: "http", Why: "so"}} }, ""},
		{"an exception without a reason", func(t *Table) { t.Except = []Except{{Front: "ws"}} }, "no reason"},
		{"an exception from nothing", func(t *Table) { t.Except = []Except{{Client: "d", Why: "so"}} }, "there are not"},
		{"an exception from a step that is lacking", func(t *Table) { t.Except = []Except{{Step: "prompt", Why: "so"}} }, "there are not"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := small()
			tt.spot(table)
			err := table.validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("validate() = %v, want an error about %q", err, tt.want)
			}
		})
	}
}

// small is a table with one client and one server.
func small() *Table {
	asking := func() *Asking { return &Asking{Params: []byte("{}"), Want: "x"} }
	return &Table{
		Transports: map[string]string{"http": "", "ws": ""},
		Clients:    map[string]*Client{"c": {Revisions: map[string]string{"http": "2025-11-25", "ws": "2025-11-25"}}},
		Servers: map[string]*Server{"s": {
			Backs: map[string]Back{"http": {}, "ws": {}}, Lacks: map[string]string{"prompt": "it has none"},
			Info: "x", Tools: []string{"t"}, Call: asking(), Read: asking(), Notice: &Notice{URI: "u"},
		}},
	}
}

// TestOnce proves that what CI tries has each client with each server, all fronts
// of each client, and all backs of each server.
func TestOnce(t *testing.T) {
	table := load(t)
	fronts, backs := make(map[[2]string]bool), make(map[[2]string]bool)
	for client, cells := range table.once() {
		met := make(map[string]bool)
		for _, c := range cells {
			met[c.Server], fronts[[2]string{client, c.Front}], backs[[2]string{c.Server, c.Back}] = true, true, true
		}
		for _, server := range table.servers() {
			if !met[server] && len(table.pairs(client, server)) > 0 {
				t.Errorf("%s does not meet %s", client, server)
			}
		}
	}
	for client, cells := range table.all() {
		for _, c := range cells {
			if !fronts[[2]string{client, c.Front}] {
				t.Errorf("%s uses no %s", client, c.Front)
			}
			if !backs[[2]string{c.Server, c.Back}] {
				t.Errorf("nobody comes to %s over %s", c.Server, c.Back)
			}
		}
	}
}

func load(t *testing.T) *Table {
	t.Helper()
	table, err := loadTable(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

const (
	pageFile  = "../../../docs/compatibility.md"
	pageBegin = "<!-- matrix: go -C interop/go test ./matrix -run Compatibility -update -->\n"
	pageEnd   = "<!-- /matrix -->\n"
)

// TestCompatibility proves that docs/compatibility.md has the table as it is.
func TestCompatibility(t *testing.T) {
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), pageBegin)
	got, after, ok2 := strings.Cut(rest, pageEnd)
	if !ok || !ok2 {
		t.Fatalf("docs/compatibility.md has no lines %q and %q", pageBegin, pageEnd)
	}
	want := load(t).markdown()
	if *update {
		if err := os.WriteFile(pageFile, []byte(before+pageBegin+want+pageEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("docs/compatibility.md has\n%s\nwant\n%s\nrun this test with -update", got, want)
	}
}
