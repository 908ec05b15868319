//go:build linux

package install

import (
	"path/filepath"
	"strings"
	"testing"
)

// pip takes the wheel of this platform, in a virtual environment.
func TestWheel(t *testing.T) {
	dir, venv := packages(t), filepath.Join(t.TempDir(), "venv")
	run(t, nil, "python3", "-m", "venv", venv)
	out := run(t, nil, filepath.Join(venv, "bin/pip"), "install", "--disable-pip-version-check", "--no-index", "--pre", "--find-links", filepath.Join(dir, "wheels"), "mcpbridge")
	if !strings.Contains(out, "Successfully installed mcpbridge-") {
		t.Errorf("pip install = %s", out)
	}
	bin := filepath.Join(venv, "bin/mcpbridge")
	if got := run(t, nil, bin, "version"); !strings.HasPrefix(got, "mcpbridge ") {
		t.Errorf("version = %s", got)
	}
	wrapped(t, nil, bin)
	run(t, nil, filepath.Join(venv, "bin/pip"), "uninstall", "--disable-pip-version-check", "--yes", "mcpbridge")
	if left, err := filepath.Glob(filepath.Join(venv, "bin/mcpbridge*")); err != nil || len(left) > 0 {
		t.Errorf("after pip uninstall there are %q, %v", left, err)
	}
}
