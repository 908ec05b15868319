package report

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// summaryOf returns the summary of a configuration, and what people read of it.
func summaryOf(t *testing.T, path, text string) (Summary, string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Load(config.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	s := NewSummary(c, func(_ *config.Config, s *config.Server) []string { return slices.Sorted(maps.Keys(s.Env)) })
	var out bytes.Buffer
	table := output.NewTable(&out, false)
	s.Print(table, path)
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	return s, out.String()
}

// How long a server may take depends on its kind, and whether it is remembered.
func TestSummaryShowsDefaultsOfKinds(t *testing.T) {
	s, text := summaryOf(t, filepath.Join(t.TempDir(), "c.yaml"), "servers: {a: {command: x}, b: {url: 'http://h'}, c: {command: x, remember: false, timeouts: {connect: 1500ms}}}")
	for _, want := range []string{" x auto principal 60s ", " http://h auto principal 10s ", " x auto principal 1.5s "} {
		if !strings.Contains(strings.Join(strings.Fields(text), " ")+" ", want) {
			t.Errorf("the summary is %s, want %q in it", text, want)
		}
	}
	for i, want := range []Served{{Connect: 60, Remember: true}, {Connect: 10}, {Connect: 1.5}} {
		if is := s.Servers[i]; is.Connect != want.Connect || is.Remember != want.Remember {
			t.Errorf("%s: connect %v, remember %v, want %v, %v", is.Name, is.Connect, is.Remember, want.Connect, want.Remember)
		}
	}
}

// A summary names the files that were included.
func TestSummaryNamesIncluded(t *testing.T) {
	dir := t.TempDir()
	included := filepath.Join(dir, "b.yml")
	if err := os.WriteFile(included, []byte("servers: {b: {builtin: notebook}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, text := summaryOf(t, filepath.Join(dir, "c.yaml"), "include: '*.yml'\nservers: {a: {builtin: notebook}}\n")
	if want := "\ninclude  " + included + "\n\nSERVER"; !strings.Contains(text, want) || strings.Join(s.Include, " ") != included {
		t.Errorf("the summary is %s, include %q, want %q in it", text, s.Include, want)
	}
}
