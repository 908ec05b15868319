package replicas

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// programs are the mcpbridge that the tests start, and the servers.
var programs struct {
	rig.Binaries
	legacy, modern string
	dir            string // for what tests build; it goes with the tests
}

// slots are how many lines run at once in the short form: most of the time they wait.
const slots = 8

func TestMain(m *testing.M) {
	if node := os.Getenv(nodeVariable); node != "" {
		if err := beNode(node); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	rig.Parallel(slots)
	dir, err := os.MkdirTemp("", "mcpbridge-replicas-")
	if err != nil {
		fmt.Println("FAIL:", err)
		os.Exit(1)
	}
	programs.dir = dir
	code := 1
	for name, to := range map[string]*string{"legacy-go": &programs.legacy, "modern-go": &programs.modern} {
		*to = filepath.Join(dir, name)
		if out, err := exec.Command("go", "-C", "../../"+name, "build", "-o", *to, ".").CombinedOutput(); err != nil {
			fmt.Printf("FAIL: building %s: %v\n%s", name, err, out)
			os.Exit(1)
		}
	}
	code = rig.Main(m, "", &programs.Binaries)
	_ = os.RemoveAll(dir) // the system clears what is left of it
	os.Exit(code)
}

// full reports whether the numbers are those of the statement, and not those that CI has
// time for.
var full = os.Getenv("REPLICAS") == "full"

// size returns how much of something there is.
func size[T any](short, stated T) T {
	if full {
		return stated
	}
	return short
}

// soon is how long at most it takes until all is in order again. The short form runs beside other
// tests, also on a busy machine.
var soon = size(15*time.Second, 5*time.Second)

// beside has a test of the short form run beside others that say the same: most of the time
// it waits. Tests that measure run alone, before these; if their subtests say so, those run
// beside each other.
func beside(t *testing.T) {
	if !full {
		t.Parallel()
	}
}

// Engines by name.
const (
	nats  = "nats"
	redis = "redis"
	peers = "peers" // no engine: the replicas know each other's addresses
)

var both = []string{nats, redis}

// over runs a test over each of engines.
func over(t *testing.T, engines []string, test func(t *testing.T, engine string)) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) { test(t, engine) })
	}
}
