package replicas

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// clocked builds, once, the program whose clock can be set. MCPBRIDGE_CLOCK names one instead.
var clocked = sync.OnceValues(func() (string, error) {
	if named := os.Getenv("MCPBRIDGE_CLOCK"); named != "" {
		return named, nil
	}
	to := filepath.Join(programs.dir, "mcpbridge-clock")
	cmd := exec.Command("go", "-C", "../../..", "build", "-tags", "clockseam", "-o", to, "./cmd/mcpbridge")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program whose clock can be set: %w\n%s", err, out)
	}
	return to, nil
})

// setClock has a replica's clock be ahead.
func (r *replica) setClock(ahead string) {
	r.w.t.Helper()
	program, err := clocked()
	if err != nil {
		r.w.t.Fatal(err)
	}
	r.program, r.env = program, []string{"CLOCKSEAM=" + ahead}
}

// TestFaultsOfClocks has three replicas whose clocks differ by 5 and 10 s: they are ready at once,
// and nothing is lost, fails or differs for clients.
func TestFaultsOfClocks(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		l, servers := lone(t)
		if _, err := clocked(); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, setup{engine: engine, warn: true, servers: servers, clocks: []string{"0s", "5s", "-5s"}})
		for _, r := range w.replicas {
			if r.took > 29*time.Second { // one that has waited for others is ready after 30
				t.Errorf("%s, with clocks 5 s off, was ready after %v", r.name, r.took)
			}
		}
		for range faultRounds(t) {
			w.unharmed(t, l, "clocks 5 s off", func() { time.Sleep(size(5*time.Second, 30*time.Second)) })
		}
	})
}
