package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/install"
)

const twoServers = "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // one\n    \"b\": {\"command\": \"y\", \"args\": []},\n  },\n}\n"

// userFile writes Cursor's file of a user and returns what to run wrap with.
func userFile(t *testing.T, text string) (file string, run func(args ...string) ran) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // which is no project of Cursor
	file = filepath.Join(home, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, func(args ...string) ran {
		return runCommand(t.Context(), []string{"HOME=" + home, "USERPROFILE=" + home}, append([]string{"wrap", "--binary", "/opt/mcpbridge"}, args...)...)
	}
}

// The copy is the file without mcpbridge however servers were added, and whatever the
// user changes between.
func TestInstallInSteps(t *testing.T) {
	file, run := userFile(t, twoServers)
	if got := run("--install", "cursor", "a"); got.code != 0 {
		t.Fatalf("install a = %+v", got)
	}
	holds(t, file+install.BackupEnding, []byte(twoServers))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(s string) []byte { return []byte(strings.Replace(s, "// one", "// the first", 1)) }
	if err := os.WriteFile(file, edit(string(data)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run("--install", "cursor", "b"); got.code != 0 {
		t.Fatalf("install b = %+v", got)
	}
	holds(t, file+install.BackupEnding, edit(twoServers))
	got := run("--uninstall", "cursor", "a")
	want := file + ": changed\n  a  changed  as it was\nRestart Cursor, or have it read its servers again.\n"
	if got.out != want || got.code != 0 {
		t.Errorf("uninstall a = %d, %s, want %s", got.code, got.out, want)
	}
	holds(t, file+install.BackupEnding, edit(twoServers))
	if got := run("--uninstall", "cursor"); got.code != 0 {
		t.Fatalf("uninstall = %+v", got)
	}
	holds(t, file, edit(twoServers))
	if got := run("--uninstall", "cursor"); got.code != 0 || !strings.HasPrefix(got.out, file+": nothing was changed\n") {
		t.Errorf("uninstall again = %+v", got)
	}
}

// A host's file may be a link into a folder that is kept elsewhere. It stays one.
func TestInstallThroughLink(t *testing.T) {
	file, run := userFile(t, twoServers)
	real := filepath.Join(t.TempDir(), "dotfiles.json")
	if err := os.Rename(file, real); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, file); err != nil {
		t.Skip(err)
	}
	if got := run("--install", "cursor"); got.code != 0 {
		t.Fatalf("install = %+v", got)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%s is no link any more: %v, %v", file, info, err)
	}
	if data, err := os.ReadFile(real); err != nil || !strings.Contains(string(data), "/opt/mcpbridge") {
		t.Errorf("%s holds %s, %v", real, data, err)
	}
	if got := run("--uninstall", "cursor"); got.code != 0 {
		t.Fatalf("uninstall = %+v", got)
	}
	holds(t, real, []byte(twoServers))
}

func TestInstallMistakes(t *testing.T) {
	file, run := userFile(t, "{\n  \"mcpServers\": {\"a\": {\"command\" \"x\"}}\n}")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--install", "cursor"}, "mcpbridge: " + file + ": line 2, column 34: not readable as JSON: invalid character '\"' after object name; correct it there, or just before\n"},
		{[]string{"--file", "x"}, "mcpbridge: want one of --install HOST and --uninstall HOST; see mcpbridge wrap --help\n"},
		{[]string{"--install", "claude"}, "mcpbridge: Claude Desktop has no file at "},
	} {
		if got := run(tt.args...); got.code == 0 || !strings.HasPrefix(got.err, tt.want) || got.out != "" {
			t.Errorf("%q = %d, %s, want %s", tt.args, got.code, got.err, tt.want)
		}
	}
	if err := os.WriteFile(file, []byte(twoServers), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "mcpbridge: " + file + `: there is no server "c"; there are a, b` + "\n"
	if got := run("--install", "cursor", "c"); got.code != exitUsage || got.err != want {
		t.Errorf("install of c = %d, %s, want %s", got.code, got.err, want)
	}
	holds(t, file, []byte(twoServers))
	if _, err := os.Stat(file + install.BackupEnding); !os.IsNotExist(err) {
		t.Errorf("a copy was left behind: %v", err)
	}
}

// go run's program is gone before the host could start it.
func TestInstallOfGoRun(t *testing.T) {
	_, _ = userFile(t, twoServers)
	got := runCommand(t.Context(), nil, "wrap", "--install", "cursor")
	want := "mcpbridge: go run leaves no program that the host could start; build one, as in go build -o ~/bin/mcpbridge ./cmd/mcpbridge, or name it with --binary\n"
	if got.code != exitUsage || got.err != want {
		t.Errorf("install = %d, %s, want %s", got.code, got.err, want)
	}
}
