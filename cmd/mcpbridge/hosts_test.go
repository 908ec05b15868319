package main

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/install"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

const hostFiles = "../../internal/hostfile/testdata"

// The complete file of each host, as its documentation has it.
var hostCases = []struct{ name, host, file string }{
	{"claude", "claude", "claude_desktop_config.json"},
	{"claude-code", "claude-code", ".mcp.json"},
	{"claude-user", "claude-code", ".claude.json"},
	{"vscode", "vscode", ".vscode/mcp.json"},
	{"cursor", "cursor", ".cursor/mcp.json"},
	{"windsurf", "windsurf", "mcp_config.json"},
	{"cline", "cline", "cline_mcp_settings.json"},
	{"gemini", "gemini", ".gemini/settings.json"},
	{"codex", "codex", ".codex/config.toml"},
	{"zed", "zed", ".zed/settings.json"},
}

// wantFile is what a host's file is to be after a change.
func wantFile(golden, name, file string) string {
	return filepath.Join(golden, name+filepath.Ext(file))
}

// hostEnviron has every variable that the files refer to. Values that nobody may see
// hold s3cret.
var hostEnviron = []string{
	"HOME=/home/ada", "API_KEY=s3cret", "MY_SERVICE_TOKEN=s3cret", "DATABASE_DSN=s3cret", "GITHUB_TOKEN=s3cret", "AUTH_TOKEN=s3cret",
	"DB_CONNECTION_STRING=s3cret", "EXTERNAL_API_KEY=s3cret", "INPUT_PERPLEXITY_KEY=s3cret", "INPUT_REGION=s3cret", "PWD=/home/ada",
}

// inHostFolder copies a host's folder and goes there. It returns where that is, and
// where the expected output is kept.
func inHostFolder(t *testing.T, name string) (dir, golden string) {
	t.Helper()
	golden, err := filepath.Abs(filepath.Join(hostFiles, name))
	if err != nil {
		t.Fatal(err)
	}
	dir, err = filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "app")
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	// Files that others may read are warned of.
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	// A file of this name would be left out of the repository by most people's rules.
	if err := os.Rename(filepath.Join(dir, "dotenv"), filepath.Join(dir, ".env")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	t.Chdir(dir)
	return dir, golden
}

var columns = regexp.MustCompile(`(\S) {2,}`)

// same compares got with the file of what is expected, dir written as DIR and columns
// two spaces apart.
func same(t *testing.T, got, dir, file string) {
	t.Helper()
	sameBytes(t, columns.ReplaceAllString(strings.ReplaceAll(got, dir, "DIR"), "$1  "), file)
}

// sameBytes compares got with the file of what is expected.
func sameBytes(t *testing.T, got, file string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant, as in %s,\n%s", got, filepath.Base(file), want)
	}
}

func TestCheckHostFiles(t *testing.T) {
	for _, tt := range hostCases {
		t.Run(tt.name, func(t *testing.T) {
			dir, golden := inHostFolder(t, tt.name)
			got := runCommand(t.Context(), hostEnviron, "check", "-c", tt.file)
			if got.code != 0 {
				t.Errorf("check = %d", got.code)
			}
			same(t, got.err+"\n"+got.out, dir, filepath.Join(golden, "want-check.txt"))
			if strings.Contains(got.out+got.err, "s3cret") {
				t.Error("check shows a secret")
			}
		})
	}
}

// What import prints is strict, and what check says of it is what it says of the
// host's file.
func TestImportHostFiles(t *testing.T) {
	for _, tt := range hostCases {
		t.Run(tt.name, func(t *testing.T) {
			dir, golden := inHostFolder(t, tt.name)
			got := runCommand(t.Context(), hostEnviron, "import", tt.host, tt.file)
			if got.code != 0 || got.err != "" {
				t.Errorf("import = %d, %s", got.code, got.err)
			}
			same(t, got.out, dir, filepath.Join(golden, "want-import.yaml"))
			if err := os.WriteFile("imported.yaml", []byte(got.out), 0o600); err != nil {
				t.Fatal(err)
			}
			check := runCommand(t.Context(), hostEnviron, "check", "-c", "imported.yaml")
			if check.code != 0 || check.err != "" {
				t.Errorf("check of what was imported = %d, %s", check.code, check.err)
			}
			direct := runCommand(t.Context(), hostEnviron, "check", "-c", tt.file)
			if a, b := inputsAside(check.out), inputsAside(direct.out); a != b {
				t.Errorf("check of what was imported says\n%s\nand of the host's file\n%s", a, b)
			}
		})
	}
}

// inputsAside is what check prints without its first line, inputs as what they stand
// for, and the widths of columns left out.
func inputsAside(out string) string {
	_, rest, _ := strings.Cut(out, "\n")
	rest = strings.ReplaceAll(rest, "${input:region}", "${INPUT_REGION}")
	return strings.Join(strings.Fields(rest), " ")
}

// The way into a host's file and back leaves not one byte changed.
func TestInstallHostFiles(t *testing.T) {
	for _, tt := range hostCases {
		t.Run(tt.name, func(t *testing.T) {
			dir, golden := inHostFolder(t, tt.name)
			before, err := os.ReadFile(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(tt.file, 0o640); err != nil {
				t.Fatal(err)
			}
			words := []string{"wrap", "--install", tt.host, "--binary", "/opt/mcpbridge", "--file", tt.file}

			dry := runCommand(t.Context(), hostEnviron, append(words, "--dry-run")...)
			sameBytes(t, dry.out, filepath.Join(golden, "want-install.diff"))
			if want := tt.file + ": would be changed\n"; !strings.HasPrefix(dry.err, want) || dry.code != 0 {
				t.Errorf("dry run = %d, %s, want %s", dry.code, dry.err, want)
			}
			holds(t, tt.file, before)
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(tt.file), "*mcpbridge*")); len(left) > 0 {
				t.Errorf("a dry run has written %q", left)
			}
			got := runCommand(t.Context(), hostEnviron, words...)
			same(t, got.out, dir, filepath.Join(golden, "want-install.txt"))
			if got.code != 0 || got.err != "" {
				t.Errorf("install = %d, %s", got.code, got.err)
			}
			installed, err := os.ReadFile(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			same(t, string(installed), dir, wantFile(golden, "want-installed", tt.file))
			holds(t, tt.file+install.BackupEnding, before)
			modes(t, 0o640, tt.file, tt.file+install.BackupEnding)

			again := runCommand(t.Context(), hostEnviron, words...)
			if !strings.HasPrefix(again.out, tt.file+": nothing was changed\n") || strings.Contains(again.out, "  changed") {
				t.Errorf("install again says %s", again.out)
			}
			back := runCommand(t.Context(), hostEnviron, "wrap", "--uninstall", tt.host, "--binary", "/opt/mcpbridge", "--file", tt.file)
			same(t, back.out, dir, filepath.Join(golden, "want-uninstall.txt"))
			holds(t, tt.file, before)
			modes(t, 0o640, tt.file)
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(tt.file), "*mcpbridge*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func holds(t *testing.T, file string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s holds\n%s\nwant\n%s", file, got, want)
	}
}

func modes(t *testing.T, want os.FileMode, files ...string) {
	t.Helper()
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", file, got, want)
		}
	}
}

// A host that is not known, or whose file is not there or another one's, is an error with what to do.
func TestHostMistakes(t *testing.T) {
	dir, _ := inHostFolder(t, "codex")
	for name, text := range map[string]string{
		"other.toml":    "model = \"m\"\n\n[mcp-servers.a]\n",
		"broken.toml":   "[mcp_servers.a]\ncommand = npx\n",
		"settings.json": "{\n  \"mcp\": {\"servers\": {\"a\": {\"command\": \"x\"}}}\n}\n",
		"continue.yaml": "name: mine\nmcpServers:\n  - name: a\n    command: x\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const vscode = "is settings.json of VS Code, which has its servers in mcp.json since version 1.102: move what stands below mcp there, to servers at the top (VS Code does it when it starts; its command MCP: Open User Configuration opens that file), and give that file to mcpbridge\n"
	const list = "Continue has its servers in a list, which mcpbridge neither reads nor changes: in ~/.continue/config.yaml, write command: mcpbridge and args: [wrap, --, COMMAND, ARGS...] below the server's name; for serve, write the server into a file like config.example.yaml, as servers: {NAME: {command: COMMAND, args: [ARGS...]}}\n"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "-c", "other.toml"}, "mcpbridge: other.toml:1: this is TOML without [mcp_servers.NAME]; mcpbridge reads the TOML of Codex, and its own configuration is YAML, like config.example.yaml\n"},
		{[]string{"check", "broken.toml"}, "mcpbridge: broken.toml:2: not readable as TOML: expected keyword \"nan\" (column 11); correct it there, or just before\n"},
		{[]string{"wrap", "--install", "codex", "--file", "broken.toml", "--binary", "x"}, "mcpbridge: broken.toml: line 2, column 11: not readable as TOML: expected keyword \"nan\"; correct it there, or just before\n"},
		{[]string{"import", "claude", ".codex/config.toml"}, "mcpbridge: .codex/config.toml: is not JSON, as Claude Desktop has it\n"},
		{[]string{"import", "codex", "settings.json"}, "mcpbridge: settings.json:2: " + vscode},
		{[]string{"check", "settings.json"}, "mcpbridge: settings.json:2: " + vscode},
		{[]string{"wrap", "--install", "vscode", "--file", "settings.json", "--binary", "x"}, "mcpbridge: settings.json: " + vscode},
		{[]string{"wrap", "--install", "vscode", "--file", "settings.json", "--binary", "x", "--all"}, "mcpbridge: settings.json: " + vscode},
		{[]string{"check", "continue.yaml"}, "mcpbridge: continue.yaml:2: " + list},
		{[]string{"wrap", "--install", "continue", "--binary", "x"}, "mcpbridge: " + list},
		{[]string{"import", "emacs"}, `mcpbridge: "emacs" is no host that mcpbridge knows; write one of claude, claude-code, vscode, cursor, windsurf, cline, gemini, codex, zed` + "\n"},
		{[]string{"import"}, "mcpbridge: want a host and at most one file; see mcpbridge import --help\n"},
		{[]string{"import", "cursor", "none.json"}, "mcpbridge: reading the configuration: open none.json: no such file or directory; give its path, or make one like config.example.yaml\n"},
		{[]string{"import", "cursor"}, "mcpbridge: Cursor has no file at " + dir + "/.cursor/mcp.json or " + dir + "/home/.cursor/mcp.json; name the file\n"},
		{[]string{"wrap", "--install", "cursor", "--uninstall", "cursor"}, "mcpbridge: want one of --install HOST and --uninstall HOST; see mcpbridge wrap --help\n"},
		{[]string{"wrap", "--install", "cursor", "--binary", "x", "--file", "none.json"}, "mcpbridge: finding the host's file: lstat none.json: no such file or directory; name it with --file\n"},
	} {
		if got := runCommand(t.Context(), []string{"HOME=" + dir + "/home", "MCPBRIDGE_STATE_DIR=" + dir + "/state"}, tt.args...); got.code == 0 || got.err != tt.want {
			t.Errorf("%q = %d, %s, want %s", tt.args, got.code, got.err, tt.want)
		}
	}
}

// --install and --uninstall complete the hosts.
func TestCompleteHosts(t *testing.T) {
	for _, flag := range []string{"--install", "--uninstall"} {
		got := runCommand(t.Context(), nil, "__complete", "wrap", flag, "")
		want := "claude\tClaude Desktop\nclaude-code\tClaude Code\nvscode\tVS Code\ncursor\tCursor\nwindsurf\tWindsurf\ncline\tCline\ngemini\tGemini CLI\ncodex\tCodex\nzed\tZed\n:4\n"
		if got.out != want {
			t.Errorf("%s completes\n%s, want\n%s", flag, got.out, want)
		}
	}
}

// What install writes of a URL reaches the same server with the same headers.
func TestInstalledURLs(t *testing.T) {
	found := 0
	for _, tt := range hostCases {
		t.Run(tt.name, func(t *testing.T) {
			_, golden := inHostFolder(t, tt.name)
			before := loadServers(t, config.Options{Path: tt.file, Environ: hostEnviron})
			if err := os.CopyFS("installed", os.DirFS(golden)); err != nil {
				t.Fatal(err)
			}
			_ = os.Rename("installed/dotenv", "installed/.env") // where there is one
			// Read as of no host in particular: only then is nothing taken away.
			wrapped := loadServers(t, config.Options{Path: wantFile("installed", "want-installed", tt.file), Environ: hostEnviron})
			for name, s := range wrapped {
				if len(s.Args) < 4 || s.Args[1] != "--name" {
					continue
				}
				found++
				env := slices.Clone(hostEnviron)
				for k, v := range s.Env {
					env = append(env, k+"="+v)
				}
				got := loadServers(t, config.Options{Servers: []config.Server{{Name: s.Args[2], URL: s.Args[3]}}, Environ: env})[s.Args[2]]
				want := before[name]
				if got.URL != want.URL || !reflect.DeepEqual(canonical(got.Headers), canonical(want.Headers)) || want.Type == "sse" && got.Type != "sse" {
					t.Errorf("%s: got %s %s %q, want %s %s %q", name, got.Type, got.URL, got.Headers, want.Type, want.URL, want.Headers)
				}
			}
		})
	}
	if found != 13 {
		t.Errorf("compared %d servers, want 13", found)
	}
}

// canonical writes the names of headers as they are sent.
func canonical(headers map[string]string) http.Header {
	h := make(http.Header)
	for name, value := range headers {
		h.Set(name, value)
	}
	return h
}

func loadServers(t *testing.T, o config.Options) map[string]config.Server {
	t.Helper()
	c, _, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]config.Server)
	for _, s := range c.Servers {
		out[s.Name] = s
	}
	return out
}
