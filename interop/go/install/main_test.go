//go:build linux

package install

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// binaries is what TestMain built, where no release is tried.
var binaries rig.Binaries

// dist is a folder as goreleaser and internal/dev/packaging leave it.
var dist string

func TestMain(m *testing.M) {
	if dist = os.Getenv("DIST"); dist != "" {
		os.Exit(m.Run())
	}
	os.Exit(rig.Main(m, "", &binaries))
}

// packages returns a folder with packages of npm and wheels: those of a release, or some
// made of the tree as it is, for other platforms of nothing.
func packages(t *testing.T) string {
	t.Helper()
	if dist != "" {
		return dist
	}
	dir := t.TempDir()
	nothing := filepath.Join(dir, "nothing")
	write(t, nothing, "another platform's")
	var artifacts []map[string]string
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"} {
		goos, goarch, _ := strings.Cut(platform, "/")
		path := nothing
		if goos == runtime.GOOS && goarch == runtime.GOARCH {
			path = binaries.Bridge
		}
		artifacts = append(artifacts, map[string]string{"type": "Binary", "goos": goos, "goarch": goarch, "path": path})
	}
	text, err := json.Marshal(artifacts)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "artifacts.json"), string(text))
	write(t, filepath.Join(dir, "metadata.json"), `{"version": "0.0.1-dev.1"}`)
	run(t, nil, "go", "-C", "../../..", "run", "./internal/dev/packaging", "-dist", dir)
	return dir
}

// release skips a test unless a whole release is tried, and returns its version.
func release(t *testing.T) string {
	t.Helper()
	if dist == "" {
		t.Skip("DIST is not set: make package tries a whole release")
	}
	var metadata struct{ Version string }
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dist, "metadata.json"))), &metadata); err != nil {
		t.Fatal(err)
	}
	return metadata.Version
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run runs a program to its end, and returns what it has written.
func run(t *testing.T, env []string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// A call of a modern client, which a server of 2025-11-25 answers.
const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":40,"b":2},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`

// wrapped has a wrap call a tool of a server on Node.js, and end with its input.
func wrapped(t *testing.T, env []string, argv ...string) {
	t.Helper()
	server, err := filepath.Abs("testdata/server.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], append(argv[1:], "wrap", "--", "node", server)...)
	cmd.Env = append(os.Environ(), env...)
	var log strings.Builder
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() }) // errors if it has ended
	defer late.Stop()
	_, err = fmt.Fprintln(in, call)
	line, readErr := bufio.NewReader(out).ReadString('\n')
	if err != nil || readErr != nil || !strings.Contains(line, `"42"`) || !strings.Contains(line, `"resultType":"complete"`) {
		t.Errorf("the call was answered %q, %v, %v; want 42", line, err, readErr)
	}
	_ = in.Close()
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("wrap ended with %v:\n%s", err, log.String())
	}
}
