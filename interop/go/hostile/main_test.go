//go:build linux

package hostile

import (
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// binaries is what TestMain built.
var binaries rig.Binaries

// TestMain runs the tests, or is the attackers that one of them has started.
func TestMain(m *testing.M) {
	if addr := os.Getenv(attackAddr); addr != "" {
		attackAll(addr)
		return
	}
	os.Exit(rig.Main(m, "", &binaries))
}
