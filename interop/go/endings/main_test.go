//go:build linux

package endings

import (
	"os"
	"os/signal"
	"syscall"
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
	// Whoever starts this with nohup has SIGHUP ignored, by mcpbridge too; a signal that is
	// listened for is not, in what is started from here.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	rig.Parallel(8) // cells wait, most of the time
	os.Exit(rig.Main(m, "", &binaries))
}
