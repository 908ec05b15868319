//go:build linux

package hostile

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	mostMemory = 400 << 20 // of the process, with limits.memory of 256 MiB
	mostLeft   = 64 << 20  // more than before, after the attack
	guests     = 20
)

// rss returns the resident memory of a process, in bytes.
func rss(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var all, resident int64
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// TestBoundedMemoryUnderAttack runs all attacks at once, for HOSTILE seconds.
func TestBoundedMemoryUnderAttack(t *testing.T) {
	server, addr, admin := newServer(t), rig.FreeAddr(t), rig.FreeAddr(t)
	p := binaries.StartBridge(t, fmt.Sprintf("listen: %s\nadmin: %s\nlimits: {memory: 256MiB}\nlog: {level: error}\nservers: {s: {url: %q, era: legacy}}\n", addr, admin, server.URL), admin)
	defer func() {
		if err := p.Stop(20 * time.Second); err != nil {
			t.Error(err)
		}
	}()
	quiet := serveGuests(t, addr, time.Second, nil)
	before := rss(t, p.Pid())

	ctx, stop := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	for i := range attacks {
		attackers.Go(func() { attacks[i].run(ctx, newClient(addr, fmt.Sprintf("127.0.0.%d", i+2))) })
	}
	var most int64
	disturbed := serveGuests(t, addr, time.Duration(rig.Int(t, "HOSTILE", 20))*time.Second, func() { most = max(most, rss(t, p.Pid())) })
	stop()
	attackers.Wait()
	t.Logf("memory: %d MiB before, %d MiB at most; p99 of a call: %v undisturbed, %v under attack", before>>20, most>>20, p99(quiet), p99(disturbed))
	if most > mostMemory {
		t.Errorf("%d MiB of memory under attack, want at most %d", most>>20, mostMemory>>20)
	}
	if os.Getenv("LATENCY") != "" && p99(disturbed) > max(2*p99(quiet), 20*time.Millisecond) {
		t.Errorf("p99 under attack = %v, want at most twice %v, or 20ms", p99(disturbed), p99(quiet))
	}
	var last int64
	rig.Until(t, 3*time.Minute, "memory given back", func() string {
		serveGuests(t, addr, time.Second, nil)
		if last = rss(t, p.Pid()); last > before+mostLeft {
			return fmt.Sprintf("%d MiB, %d before", last>>20, before>>20)
		}
		return ""
	})
}

// serveGuests has well-behaved clients call for a while, who must get every answer, and
// returns how long the calls took. look, which may be nil, is called now and then.
func serveGuests(t *testing.T, addr string, d time.Duration, look func()) (took []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for range guests {
		all.Go(func() {
			c := newClient(addr, "127.0.0.1")
			defer c.http.CloseIdleConnections()
			for time.Now().Before(end) {
				begin := time.Now()
				status, text, err := c.send(t.Context(), "tools/call", "echo", request("tools/call", "{}", `"name":"echo"`))
				if err != nil || status != 200 || !strings.Contains(text, "here") {
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
	for look != nil && time.Now().Before(end) {
		look()
		time.Sleep(50 * time.Millisecond)
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
