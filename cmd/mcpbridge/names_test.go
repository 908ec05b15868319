package main

import (
	"strings"
	"testing"
)

// shownNotebook has clients see of a notebook what the tests below expect, by the other names.
const shownNotebook = `servers:
  a:
    builtin: NOTEBOOK
    tools: {deny: [enable_search], rename: {edit_note: write}, describe: {write: "Writes a note."}}
    prompts: {rename: {summarize: sum_up}}
    resources: {deny: ["note://journal"]}
`

// Commands that use a server have the names that clients see, and pin and probe its own.
func TestG03CommandsHaveShownNames(t *testing.T) {
	for _, kind := range []string{"notebook", "modern-notebook"} {
		file := configFile(t, strings.ReplaceAll(shownNotebook, "NOTEBOOK", kind))
		environ := []string{"XDG_STATE_HOME=" + t.TempDir()}
		for _, tt := range []struct {
			args   []string
			code   int
			has    string // of output and errors
			hasNot string
		}{
			{[]string{"ls", "-c", file, "a"}, 0, "write                    Writes a note.\n", "edit_note"},
			{[]string{"ls", "-c", file, "a"}, 0, "sum_up", "journal"},
			{[]string{"call", "-c", file, "a", "write", "name=x", "text=y"}, 0, "saved", ""},
			{[]string{"call", "-c", file, "a", "edit_note", "name=x"}, exitFailure, `has no tool "edit_note"; there are: write`, "search"},
			{[]string{"prompt", "-c", file, "a", "sum_up", "name=todo"}, 0, "buy milk", ""},
			{[]string{"prompt", "-c", file, "a", "summarize", "name=todo"}, exitFailure, "Unknown prompt: summarize", ""},
			{[]string{"read", "-c", file, "a", "note://todo"}, 0, "buy milk", ""},
			{[]string{"read", "-c", file, "a", "note://%6Aournal"}, exitFailure, "Resource not found", ""},
			{[]string{"pin", "-c", file, "a"}, exitFailure, "new      edit_note", "write"},
			{[]string{"pin", "-c", file, "a"}, exitFailure, "new      enable_search", "Writes"},
		} {
			got := runCommand(t.Context(), environ, tt.args...)
			if text := got.out + got.err; got.code != tt.code || !strings.Contains(text, tt.has) || tt.hasNot != "" && strings.Contains(text, tt.hasNot) {
				t.Errorf("%s: %q = %d %s, want %d, %q and not %q", kind, tt.args, got.code, text, tt.code, tt.has, tt.hasNot)
			}
		}
	}
}

// check --connect asks servers for their own names, and says of which it has none and which two
// things would have.
func TestG03Check(t *testing.T) {
	file := configFile(t, strings.ReplaceAll(shownNotebook, "NOTEBOOK", "notebook"))
	got := runCommand(t.Context(), nil, "check", "-c", file, "--connect")
	if got.code != 0 || !strings.Contains(got.out, "\nSERVER  CLIENTS SEE OF IT\n") || strings.Contains(got.out, "warning") {
		t.Errorf("check --connect = %d %s%s, want what clients see, and no warning", got.code, got.out, got.err)
	}
	file = configFile(t, `servers:
  a:
    builtin: notebook
    tools: {allow: ["*_note", "enable*", gone], deny: ["delete_*"], rename: {edit_note: enable_search}, describe: {enable_x: x}}
    prompts: {allow: [summarize], rename: {summarize: s}}
`)
	got = runCommand(t.Context(), nil, "check", "-c", file, "--connect", "--json")
	for _, want := range []string{
		`"tools.allow: the server has no tool \"gone\""`, `"tools.deny: the server has no tool \"delete_*\""`,
		`"the tools \"edit_note\" and \"enable_search\" would both be called \"enable_search\"`, `"edit_note": "enable_search"`,
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("check --connect --json = %d %s%s, want %s in it", got.code, got.out, got.err, want)
		}
	}
}
