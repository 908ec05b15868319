//go:build linux

package hostile

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	// mostMemory is how much the process may have, with limits.memory of 256 MiB.
	mostMemory = 400 << 20
	// guests is how many clients behave well.
	guests = 20
)

// A bridge is mcpbridge in front of a server, in a process of its own.
type bridge struct {
	*process.Process
	addr, admin string
	server      *server
}

// startBridge starts mcpbridge, which takes the server for one of an era.
func startBridge(t *testing.T, era string) *bridge { return startBridgeWithin(t, era, 256) }

// startBridgeWithin is startBridge with limits.memory, in MiB.
func startBridgeWithin(t *testing.T, era string, memory int64) *bridge {
	t.Helper()
	b := &bridge{addr: rig.FreeAddr(t), admin: rig.FreeAddr(t), server: newServer(t)}
	b.Process = binaries.StartBridge(t, fmt.Sprintf("listen: %s\nadmin: %s\nlimits: {memory: %dMiB}\nlog: {level: error}\nservers: {s: {url: %q, era: %s}}\n",
		b.addr, b.admin, memory, b.server.URL, era), b.admin)
	t.Cleanup(func() {
		if err := b.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return b
}

// memory returns the resident memory of the process, and the most it has had.
func (b *bridge) memory(t *testing.T) (now, most int64) {
	t.Helper()
	return b.status(t, "VmRSS:"), b.status(t, "VmHWM:")
}

// status returns a line of /proc/PID/status that is about memory, in bytes.
func (b *bridge) status(t *testing.T, key string) (n int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), key)
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatalf("%s of /proc/%d/status: %v", key, b.Pid(), err)
	}
	return n << 10
}

// refused returns how often a limit was hit.
func (b *bridge) refused(t *testing.T, limit string) (n float64) {
	t.Helper()
	for name, v := range rig.Gauges(t, http.DefaultClient, b.admin) {
		if strings.HasPrefix(name, "mcpbridge_limits_hit_total{") && strings.Contains(name, `limit="`+limit+`"`) {
			n += v
		}
	}
	return n
}

// serveGuests has well-behaved clients call for a while, who must get every answer, and
// returns how long the calls took. Each comes from an address of its own.
func (b *bridge) serveGuests(t *testing.T, d time.Duration) (took []time.Duration) {
	t.Helper()
	var mu sync.Mutex // guards took
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for i := range guests {
		all.Go(func() {
			c := newClient(b.addr, fmt.Sprintf("127.0.1.%d", i+1))
			defer c.http.CloseIdleConnections()
			for time.Now().Before(end) {
				begin := time.Now()
				status, text, err := c.tool(t.Context(), "echo", "{}", "")
				if err != nil || status != http.StatusOK || !strings.Contains(text, "here") {
					t.Errorf("a guest's call = %d %.200s, %v, want its answer", status, text, err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(begin))
				mu.Unlock()
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	all.Wait()
	return took
}

func p99(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*99/100].Round(10 * time.Microsecond)
}
