package router

import (
	"errors"
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
)

// fill puts a device that is always full in the place of the file of an audit log.
func fill(t *testing.T, path string, log *audit.Log) {
	t.Helper()
	if err := errors.Join(os.Remove(path), os.Symlink("/dev/full", path)); err != nil {
		t.Fatal(err)
	}
	log.Write(&audit.Record{Name: "for which there is no room"})
	bridgetest.Eventually(t, "lines are written in vain", log.Failing)
}

// empty puts a file there again.
func empty(t *testing.T, path string, log *audit.Log) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	bridgetest.Eventually(t, "lines are written", func() bool { return !log.Failing() })
}
