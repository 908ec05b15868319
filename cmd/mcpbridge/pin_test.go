package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
)

func TestPin(t *testing.T) {
	dir := t.TempDir()
	path := configFile(t, "state_dir: "+dir+"\nservers: {book: {builtin: notebook, pin: refuse, policy: {default: deny}}}")
	run := func(code int, parts string, args ...string) {
		t.Helper()
		got := runCommand(t.Context(), nil, append([]string{"pin"}, args...)...)
		if got.code != code || !strings.Contains(got.out+got.err, parts) {
			t.Errorf("pin %v = %d, %q, %q, want %d and %q", args, got.code, got.out, got.err, code, parts)
		}
	}
	run(1, "new      edit_note", "book", "-c", path)
	run(0, "tools accepted: 1", "book", "-c", path, "--accept", "edit_note")
	run(1, "new      enable_search", "book", "-c", path)
	run(0, "tools accepted: 2", "book", "-c", path, "--accept")
	run(0, "nothing differs", "book", "-c", path)
	run(2, "which server?", "book")
	run(2, "no server of", "other", "-c", path)

	f, _, err := pin.Folder(dir).Load(t.Context(), "book")
	if err != nil || !f.Complete {
		t.Fatalf("Load = %+v, %v, want a complete list", f, err)
	}
	_, err = pin.Update(t.Context(), pin.Folder(dir), "book", func(f *pin.File) {
		f.Accept(pin.Change{Tool: "edit_note", Is: []byte(`{"name":"edit_note","description":"was \u001b[31mred"}`)})
		was := f.Tools["edit_note"]
		was.Digests = was.Digests[1:]
		f.Tools["edit_note"] = was
		f.Tools["old"] = pin.Tool{Definition: []byte(`{"name":"old"}`)}
	})
	if err != nil {
		t.Fatal(err)
	}
	run(1, "changed  edit_note\n  - description: \"was ", "book", "-c", path)
	run(1, "  + description: \"Replace a note's text", "book", "-c", path)
	run(1, "gone     old", "book", "-c", path)
	if got := runCommand(t.Context(), nil, "pin", "book", "-c", path); strings.Contains(got.out, "\x1b") {
		t.Errorf("a definition writes to the terminal: %q", got.out)
	}
	if matches, _ := filepath.Glob(filepath.Join(dir, "pins", "*.*.*")); len(matches) != 0 {
		t.Errorf("the folder has %v, want no file that was not done", matches)
	}
}

// Whoever runs mcpbridge is not one of its clients.
func TestCommandsHaveNoPolicy(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit")
	path := configFile(t, "audit: "+audit+"\nservers: {book: {builtin: notebook, policy: {default: deny}, rate: {server: {per_second: 0.001}}}}")
	for _, args := range [][]string{{"call", "book", "edit_note", "name=a", "text=b", "-c", path}, {"ls", "book", "-c", path}} {
		if got := runCommand(t.Context(), nil, args...); got.code != 0 {
			t.Errorf("%v = %d %s %s", args, got.code, got.out, got.err)
		}
	}
	if found, _ := filepath.Glob(audit); found != nil {
		t.Error("they are recorded")
	}
}
