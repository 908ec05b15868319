package quirks

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

var update = flag.Bool("update", false, "write the tables of docs/quirks.md")

const page = "../../docs/quirks.md"

// Every quirk says all that a reader has to know, under a name of its own.
func TestTable(t *testing.T) {
	id, name := regexp.MustCompile(`^(Q|M2L|L2M|F|T|U)-[0-9]{2}$`), regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	known := make(map[string]bool)
	for _, q := range All() {
		d := q.Describe()
		for what, text := range map[string]string{"Seen": d.Seen, "Where": d.Where, "Done": d.Done, "Costs": d.Costs, "Breaks": d.Breaks, "Section": d.Section, "Since": d.Since} {
			if text == "" || strings.ContainsAny(text, "\n|") {
				t.Errorf("%s: %s is %q, want a text without line breaks", q, what, text)
			}
		}
		if !id.MatchString(d.ID) || !name.MatchString(d.Name) || known[d.Name] || d.Side != Client && d.Side != Server {
			t.Errorf("%q of %q and %q is not a quirk of its own", d.Name, d.ID, d.Side)
		}
		known[d.Name] = true
		if got, ok := Of(d.Name); !ok || got != q {
			t.Errorf("Of(%q) = %v, %v", d.Name, got, ok)
		}
	}
	if q, ok := Of("none"); ok {
		t.Errorf("Of(none) = %v, want none", q)
	}
}

// The configuration can switch off each quirk that has a switch, and no other.
func TestNames(t *testing.T) {
	var want []string
	for _, q := range All() {
		if !q.Describe().Always {
			want = append(want, q.String())
		}
	}
	names := config.Keys().ByName["servers"].Each.ByName["quirks"].Names
	if !slices.Equal(names, want) {
		t.Errorf("the configuration has the names %q, want %q", names, want)
	}
}

// The page has the tables of the package.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for _, side := range []Side{Client, Server} {
		begin, end := fmt.Sprintf("<!-- %s -->\n", side), fmt.Sprintf("<!-- end of %s -->\n", side)
		before, rest, ok := strings.Cut(got, begin)
		_, after, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("no %q and %q in the page", begin, end)
		}
		got = before + begin + rows(side) + end + after
	}
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got != string(text) && !*update {
		t.Error("the tables of docs/quirks.md are not those of the package; run: go test ./internal/quirks -run Page -update")
	}
}

// rows returns the table of one side in Markdown.
func rows(side Side) string {
	out := "\n| rule | name | what is seen | where | since | what is done | what it costs | what it breaks |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for _, q := range All() {
		if d := q.Describe(); d.Side == side {
			name := "`" + d.Name + "`"
			if d.Always {
				name += ", always"
			}
			out += fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s (%s). |\n", d.ID, name, d.Seen, d.Where, d.Since, d.Done, d.Costs, d.Breaks, d.Section)
		}
	}
	return out + "\n"
}
