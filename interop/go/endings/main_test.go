//go:build linux

package endings

import (
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// binaries is what TestMain built.
var binaries rig.Binaries

// programs are what the test's binary can be, by its first argument.
var programs = map[string]func(args []string) int{"server": serve, "heedless": heedless}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		os.Exit(programs[os.Args[1]](os.Args[2:]))
	}
	rig.Parallel(8) // cells wait, most of the time
	os.Exit(rig.Main(m, "", &binaries))
}
