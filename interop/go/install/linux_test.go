//go:build linux

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// overlay runs a script over a copy of this machine's files. With files, a systemd of its
// own runs it, and the script finds them in /srv.
func overlay(t *testing.T, script, files string) string {
	t.Helper()
	argv := []string{"unshare", "--mount", "--pid", "--fork", "--cgroup", "--uts", "--ipc", "--net", "--kill-child",
		"sh", "testdata/overlay.sh", t.TempDir(), absolute(t, dist), filepath.Join("testdata", script)}
	if files != "" {
		argv = append(argv, files)
	}
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if files == "" && err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The deb is installed, its unit is one that systemd understands and finds confined, and
// nothing is left when it is purged.
func TestDeb(t *testing.T) {
	release(t)
	t.Log(overlay(t, "deb.sh", ""))
}

func TestRPM(t *testing.T) {
	release(t)
	t.Log(overlay(t, "rpm.sh", ""))
}

// The unit of the deb, run by systemd: it is ready when it says so, runs a command with
// the rights of the unit, drains, is started again, and not with a mistake.
func TestUnit(t *testing.T) {
	release(t)
	files := t.TempDir()
	write(t, filepath.Join(files, "server.mjs"), read(t, "testdata/server.mjs"))
	write(t, filepath.Join(files, "config.yaml"), `listen: 127.0.0.1:2526
state_dir: /var/lib/mcpbridge
audit: /var/log/mcpbridge/audit.log
drain_delay: 300ms
servers:
  notebook: {builtin: notebook}
  adder: {command: node, args: [/server.mjs], env: {ADDER_KEY: "${ADDER_KEY}"}}
`)
	out := overlay(t, "unit.sh", files)
	status, err := os.ReadFile(filepath.Join(files, "status"))
	log, _ := os.ReadFile(filepath.Join(files, "log")) // none, if systemd did not start
	if strings.TrimSpace(string(status)) != "0" {
		t.Errorf("unit.sh ended with %q, %v; systemd: %s\n%s", status, err, out, log)
	}
}
