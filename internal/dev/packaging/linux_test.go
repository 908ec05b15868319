package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The folder in which the unit may write logs is the one that logrotate looks at, which the
// packages have, and in which the audit log of the pages and of the configuration is.
func TestLogsOfTheUnitAreRotated(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if unit := read("packaging/systemd/mcpbridge.service"); !strings.Contains(unit, "\nLogsDirectory=mcpbridge\nLogsDirectoryMode=0700\n") {
		t.Error("mcpbridge.service has no folder for logs that its user alone can read")
	}
	const log = "/var/log/mcpbridge/audit.log"
	for _, name := range []string{"packaging/systemd/config.yaml", "docs/policy.md", "docs/install.md"} {
		if !strings.Contains(read(name), "audit: "+log) {
			t.Errorf("%s does not name %s", name, log)
		}
	}
	rotation := read("packaging/logrotate/mcpbridge")
	pattern, rest, _ := strings.Cut(rotation[strings.Index(rotation, "\n/")+1:], " {\n")
	if ok, err := path.Match(pattern, log); !ok {
		t.Errorf("logrotate looks at %s: %v, want %s among it", pattern, err, log)
	}
	if !strings.Contains(rest, "\tnocreate\n") {
		t.Error("logrotate makes the next file, which is for the user of the service to do")
	}
	var release struct {
		NFPMs []struct {
			Contents []struct {
				Src, Dst, Type string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(".goreleaser.yaml")), &release); err != nil {
		t.Fatal(err)
	}
	for _, c := range release.NFPMs[0].Contents {
		if c.Src == "packaging/logrotate/mcpbridge" && c.Dst == "/etc/logrotate.d/mcpbridge" && c.Type == "config|noreplace" {
			return
		}
	}
	t.Error("the packages do not have packaging/logrotate/mcpbridge")
}
