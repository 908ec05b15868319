package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/install"
)

// movedName is the part of a folder's name that depends on where the host's file is.
var movedName = regexp.MustCompile(`(hosts/[a-z-]+)-[0-9a-f]{8}`)

// Each host's file is one entry and back without one byte changed, and what its servers are is
// nobody else's to read.
func TestInstallAllHostFiles(t *testing.T) {
	for _, tt := range hostCases {
		t.Run(tt.name, func(t *testing.T) {
			dir, golden := inHostFolder(t, tt.name)
			before, err := os.ReadFile(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(tt.file, 0o644); err != nil {
				t.Fatal(err)
			}
			state := filepath.Join(dir, "state")
			env := append(slices.Clone(hostEnviron), "MCPBRIDGE_STATE_DIR="+state)
			words := []string{"wrap", "--install", tt.host, "--all", "--binary", "/opt/mcpbridge", "--file", tt.file}
			told := func(text, file string) {
				t.Helper()
				same(t, movedName.ReplaceAllString(strings.ReplaceAll(text, dir, "DIR"), "$1-HASH"), dir, filepath.Join(golden, file))
			}

			dry := runCommand(t.Context(), env, append(words, "--dry-run")...)
			sameBytes(t, movedName.ReplaceAllString(strings.ReplaceAll(dry.out, dir, "DIR"), "$1-HASH"), filepath.Join(golden, "want-all.diff"))
			holds(t, tt.file, before)
			if _, err := os.Stat(state); !os.IsNotExist(err) {
				t.Errorf("a dry run has written: %v", err)
			}
			got := runCommand(t.Context(), env, words...)
			told(got.out, "want-all.txt")
			if got.code != 0 || got.err != "" {
				t.Errorf("install = %d, %s", got.code, got.err)
			}
			installed, err := os.ReadFile(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			told(string(installed), "want-all"+filepath.Ext(tt.file))
			kept := "before" + filepath.Ext(tt.file)
			modes(t, 0o644, tt.file)
			folder := movedFolder(t, state)
			modes(t, 0o700, state, filepath.Dir(folder), folder)
			modes(t, 0o600, filepath.Join(folder, "servers.yaml"), filepath.Join(folder, kept), filepath.Join(folder, "record.json"))
			holds(t, filepath.Join(folder, kept), before)
			servers, err := os.ReadFile(filepath.Join(folder, "servers.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			told(string(servers), "want-all.yaml")
			if check := runCommand(t.Context(), env, "check", filepath.Join(folder, "servers.yaml")); check.code != 0 || check.err != "" {
				t.Errorf("check of what was moved = %d, %s", check.code, check.err)
			}

			again := runCommand(t.Context(), env, words...)
			if !strings.HasPrefix(again.out, tt.file+": nothing was changed\n") || again.code != 0 {
				t.Errorf("install again = %d, %s", again.code, again.out)
			}
			holds(t, tt.file, installed)
			back := runCommand(t.Context(), env, "wrap", "--uninstall", tt.host, "--binary", "/opt/mcpbridge", "--file", tt.file)
			told(back.out, "want-all-back.txt")
			holds(t, tt.file, before)
			modes(t, 0o644, tt.file)
			left, _ := filepath.Glob(filepath.Join(state, "hosts", "*"))
			if beside, _ := filepath.Glob(filepath.Join(filepath.Dir(tt.file), "*mcpbridge*")); len(left)+len(beside) > 0 {
				t.Errorf("left behind: %q, %q", left, beside)
			}
		})
	}
}

// movedFolder is the only folder of what was moved.
func movedFolder(t *testing.T, state string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(state, "hosts", "*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("folders of what was moved: %q, %v, want one", all, err)
	}
	return all[0]
}

func edit(t *testing.T, file, old, new string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s has no %s:\n%s", file, old, data)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Servers that are added later are moved as well, and what the host has written into its entry
// stays; uninstalling puts all back, with what was changed beside.
func TestInstallAllInSteps(t *testing.T) {
	file, run := userFile(t, twoServers)
	if got := run("--install", "cursor", "--all", "a"); got.code != 0 || !strings.Contains(got.out, "  a  moved\n") || strings.Contains(got.out, "  b  ") {
		t.Fatalf("install a = %+v", got)
	}
	edit(t, file, `"args"`, `"autoApprove": ["x"], "args"`)
	edit(t, file, `"b":`, `"c": {"command": "z"}, "b":`)
	if got := run("--install", "cursor", "--all"); got.code != 0 || !strings.Contains(got.out, "  a  moved before\n  c  moved\n  b  moved\n") {
		t.Errorf("install of all = %+v", got)
	}
	data, err := os.ReadFile(file)
	if err != nil || strings.Count(string(data), "command") != 1 || !strings.Contains(string(data), `"autoApprove": ["x"]`) {
		t.Errorf("the file has %s, %v", data, err)
	}
	edit(t, file, "{\n", "{\n  \"mine\": 1,\n")
	if got := run("--uninstall", "cursor", "a"); got.code != exitUsage || !strings.Contains(got.err, "a was moved to ") {
		t.Errorf("uninstall of a = %+v", got)
	}
	if got := run("--uninstall", "cursor", "--all"); got.code != 0 {
		t.Errorf("uninstall = %+v", got)
	}
	want := strings.Replace(twoServers, `"b":`, `"c": {"command": "z"}, "b":`, 1)
	holds(t, file, []byte(strings.Replace(want, "{\n", "{\n  \"mine\": 1,\n", 1)))
	if got := run("--uninstall", "cursor"); got.code != 0 || !strings.HasPrefix(got.out, file+": nothing was changed\n") {
		t.Errorf("uninstall again = %+v", got)
	}
}

// Servers under a mcpbridge of their own stay so, beside those that are one entry; uninstalling
// takes out both.
func TestInstallAllBesideSingle(t *testing.T) {
	file, run := userFile(t, twoServers)
	for _, args := range [][]string{{"--install", "cursor", "a"}, {"--install", "cursor", "--all"}} {
		if got := run(args...); got.code != 0 {
			t.Fatalf("%q = %+v", args, got)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), `"a": {"command": "/opt/mcpbridge", "args": ["wrap", "--", "x"]}, // one`) || strings.Contains(string(data), `"b"`) {
		t.Errorf("the file has %s, %v", data, err)
	}
	if got := run("--uninstall", "cursor"); got.code != 0 || !strings.Contains(got.out, "  b          put back  as it was\n  mcpbridge  removed\n  a          changed  as it was\n") {
		t.Errorf("uninstall = %+v", got)
	}
	holds(t, file, []byte(twoServers))
	if _, err := os.Stat(file + install.BackupEnding); !os.IsNotExist(err) {
		t.Errorf("a copy was left behind: %v", err)
	}
}

// What the user has changed in the file of the servers is kept, whatever is installed or
// uninstalled then.
func TestInstallAllKeepsWhatWasChanged(t *testing.T) {
	file, run := userFile(t, twoServers)
	if got := run("--install", "cursor", "--all", "a"); got.code != 0 {
		t.Fatalf("install = %+v", got)
	}
	home := filepath.Dir(filepath.Dir(file))
	state := filepath.Join(home, ".local", "state", "mcpbridge")
	moved := filepath.Join(movedFolder(t, state), "servers.yaml")
	edit(t, moved, "servers:\n", "# mine\nservers:\n")
	edit(t, moved, "    command: x\n", "    command: x\n    tools: {deny: [w]}\n")
	if got := run("--install", "cursor", "--all"); got.code != 0 {
		t.Errorf("install of all = %+v", got)
	}
	data, err := os.ReadFile(moved)
	for _, want := range []string{"# mine\n", "deny: [w]", "  b:\n    command: y\n", "name_max: 50\n"} {
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s has %s, %v, want %s in it", moved, data, err, want)
		}
	}
	got := run("--uninstall", "cursor")
	holds(t, file, []byte(twoServers))
	kept, _ := filepath.Glob(filepath.Join(state, "hosts", "*.yaml"))
	if len(kept) != 1 || got.code != 0 || !strings.Contains(got.out, "is kept as "+kept[0]) {
		t.Fatalf("uninstall = %+v; kept are %q", got, kept)
	}
	holds(t, kept[0], data)
	modes(t, 0o600, kept[0])
}

// Each mistake leaves the host's file and what was moved as they are, and says what to do.
func TestInstallAllMistakes(t *testing.T) {
	file, run := userFile(t, `{"mcpServers": {"a": {"command": "x", "disabled": true}, "b": {"command": "y", "env": {"A": "${env:UNSET}"}}, "a_b": {"command": "z"}, "a__b": {"command": "z"}}}`)
	got := run("--install", "cursor", "--all")
	for _, want := range []string{
		"  a     left alone  is disabled, and stays so that it can be enabled in Cursor\n",
		"  b     left alone  environment variable UNSET is not set; set it, or write ${UNSET:-default}\n",
		"  a__b  left alone  names of a__b and of a_b would both begin with a_b__; write a prefix of its own for one of them; it is left out of the group\n",
		"  a_b   moved\n",
	} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("install = %+v, want %s in it", got, want)
		}
	}
	installed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edit(t, file, `"mcpbridge"`, `"a_b": {"command": "other"}, "mcpbridge"`)
	for _, words := range []string{"--install", "--uninstall"} {
		if got := run(words, "cursor", "--all"); got.code != exitUsage || !strings.Contains(got.err, "a_b was moved, and is in the file again, but not as it was: rename or remove that one") {
			t.Errorf("%s with another a_b = %+v", words, got)
		}
	}
	if err := os.WriteFile(file, []byte(`{"mcpServers": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"--install", "--uninstall"} {
		if got := run(words, "cursor", "--all"); got.code != exitUsage || !strings.Contains(got.err, "is not in it any more, and its servers are nowhere else: write it again") {
			t.Errorf("%s without the entry = %+v", words, got)
		}
	}
	if err := os.WriteFile(file, installed, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := movedFolder(t, filepath.Join(filepath.Dir(filepath.Dir(file)), ".local", "state", "mcpbridge"))
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if got := run("--uninstall", "cursor"); got.code != exitUsage || !strings.Contains(got.err, "what it had before is not in that folder any more") {
		t.Errorf("uninstall without the folder = %+v", got)
	}
	holds(t, file, installed)
	if got := runCommand(t.Context(), nil, "wrap", "--install", "cursor", "--all", "--binary", "x", "--file", file); got.code == 0 || !strings.Contains(got.err, "there is no folder to move the servers to; set MCPBRIDGE_STATE_DIR, or HOME") {
		t.Errorf("install at home nowhere = %+v", got)
	}
}

// The very entry that is written serves what was moved, as the host would start it.
func TestG18InstalledEntryServes(t *testing.T) {
	self, err := json.Marshal(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	text := `{"mcpServers": {"old": {"command": ` + string(self) + `, "args": ["notebook-on-stdio"], "disabledTools": ["enable_search"]}, "new": {"command": ` + string(self) + `, "args": ["modern-notebook-on-stdio"]}}}`
	file, run := userFile(t, text)
	if got := run("--install", "windsurf", "--all", "--file", file, "--binary", bin); got.code != 0 {
		t.Fatalf("install = %+v", got)
	}
	var host struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &host)
	}
	entry := host.Servers["mcpbridge"]
	if err != nil || len(host.Servers) != 1 || entry.Command != bin || entry.Args[0] != "wrap" {
		t.Fatalf("the file has %s, %v", data, err)
	}
	w := wrap(t, nil, entry.Args[1:]...)
	w.send(modernRequest("1", "tools/list", ""))
	w.want(`"name":"old__edit_note"`, `"name":"new__edit_note"`, `"name":"new__enable_search"`)
	w.send(modernRequest("2", "tools/call", `,"name":"old__edit_note","arguments":{"name":"x","text":"y"}`))
	w.want(`"id":2`, "saved")
}

// Where the host has a link to its file, paths are those beside the link, which stays one.
func TestInstallAllThroughLink(t *testing.T) {
	const text = `{"mcpServers": {"a": {"command": "x", "envFile": "mine.env"}}}`
	file, run := userFile(t, text)
	real := filepath.Join(t.TempDir(), "dotfiles.json")
	if err := os.Rename(file, real); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "mine.env"), []byte("A=b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, file); err != nil {
		t.Skip(err)
	}
	if got := run("--install", "cursor", "--all"); got.code != 0 || !strings.Contains(got.out, "  a  moved\n") {
		t.Fatalf("install = %+v", got)
	}
	folder := movedFolder(t, filepath.Join(filepath.Dir(filepath.Dir(file)), ".local", "state", "mcpbridge"))
	data, err := os.ReadFile(filepath.Join(folder, "servers.yaml"))
	if want := "env_file: " + filepath.Join(filepath.Dir(file), "mine.env"); err != nil || !strings.Contains(string(data), want) {
		t.Errorf("moved were %s, %v, want %s in it", data, err, want)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%s is no link any more: %v, %v", file, info, err)
	}
	if got := run("--uninstall", "cursor"); got.code != 0 {
		t.Errorf("uninstall = %+v", got)
	}
	holds(t, real, []byte(text))
}
