package pin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

const (
	runs     = `{"name":"run","description":"runs","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}`
	plain    = `{"name":"run","description":"runs","inputSchema":{"type":"object"}}`
	required = `{"name":"run","description":"runs","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`
	untyped  = `{"name":"run","description":"runs","inputSchema":{"properties":{}}}`
	typed    = `{"name":"run","description":"runs","inputSchema":{"properties":{},"type":"object"}}`
	other    = `{"name":"run","description":"runs away","inputSchema":{"type":"object"}}`
)

// writeOld writes a file as it was before forms, with the digest of one definition.
func writeOld(t *testing.T, definition string) Folder {
	t.Helper()
	dir := Folder(t.TempDir())
	text, err := json.Marshal(map[string]any{"server": "files", "complete": true, "tools": map[string]any{
		"run": map[string]any{"digests": []string{Digest([]byte(definition))}, "definition": json.RawMessage(definition), "accepted": "2026-11-01T00:00:00Z"},
	}})
	if err == nil {
		err = os.MkdirAll(filepath.Join(string(dir), "pins"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(dir.file("files"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// What was accepted before there was one form of definitions needs not be accepted again:
// neither what a running mcpbridge had seen, nor what mcpbridge pin had been shown.
func TestOlderFormsAreRead(t *testing.T) {
	for _, tt := range []struct {
		name, pinned, said string
		shown              int
	}{
		{"as the server said it", runs, runs, 1},
		{"without execution, as it was shown", plain, runs, 1},
		{"with the type that was added", typed, untyped, 1},
		{"with another description", plain, other, 0},
		{"with another execution than the server said", runs, required, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Open(Options{Store: writeOld(t, tt.pinned), Server: "files", Refuse: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := list(p, true, tt.said); len(got) != tt.shown || p.Refuses("run") != (tt.shown == 0) {
				t.Errorf("shown %v, refused: %v", got, p.Refuses("run"))
			}
		})
	}
}

// What is accepted in the new form has all that the server said: a change of execution is one,
// also of a tool that was accepted without it in the old form, and again in the new one.
func TestNewFormHasEverything(t *testing.T) {
	p, err := Open(Options{Store: Folder(t.TempDir()), Server: "files", Refuse: true})
	if err != nil {
		t.Fatal(err)
	}
	list(p, true, plain)
	if got := list(p, true, runs); len(got) != 0 {
		t.Error("execution was added, and the tool is shown")
	}
	dir := writeOld(t, plain)
	_, err = Update(t.Context(), dir, "files", func(f *File) {
		if c := f.Compare([][]byte{[]byte(runs)}); len(c) != 0 {
			t.Errorf("Compare of what was accepted in the old form = %s", c)
		}
		f.Renew([][]byte{[]byte(runs)})
	})
	if err != nil {
		t.Fatal(err)
	}
	if p, err = Open(Options{Store: dir, Server: "files", Refuse: true}); err != nil {
		t.Fatal(err)
	}
	if got := list(p, true, runs); len(got) != 1 {
		t.Error("what was renewed is refused")
	}
	if got := list(p, true, required); len(got) != 0 {
		t.Error("execution has changed, and the tool is shown")
	}
}

// A tool that a server shows in two forms has a change of each.
func TestTwoFormsAreTwoChanges(t *testing.T) {
	f := newFile("files")
	changes := f.Compare([][]byte{[]byte(plain), []byte(other), []byte(plain)})
	if len(changes) != 2 {
		t.Fatalf("Compare = %s, want two", changes)
	}
	for _, c := range changes {
		f.Accept(c)
	}
	if c := f.Compare([][]byte{[]byte(other), []byte(plain)}); len(c) != 0 {
		t.Errorf("Compare of what was accepted = %s", c)
	}
}
