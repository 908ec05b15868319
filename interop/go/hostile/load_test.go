//go:build linux

package hostile

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	// longRun is from how many seconds on a run judges times, and what is left.
	longRun = 60
	// mostLeft is how much more memory than before the process may have when the attack is
	// over for leftWithin.
	mostLeft   = 64 << 20
	leftWithin = 3 * time.Minute
)

// TestBoundedMemoryUnderAttack runs all attacks at once, for HOSTILE seconds. A run of 60
// seconds judges how long the others' calls take, and what is left afterwards, too.
func TestBoundedMemoryUnderAttack(t *testing.T) {
	seconds := rig.Int(t, "HOSTILE", 20)
	b := startBridge(t, "legacy")
	quiet := b.serveGuests(t, time.Duration(max(seconds/6, 2))*time.Second)
	before, _ := b.memory(t)

	stop, busy := startAttackers(t, b.addr), processTime(t, b.Pid())
	disturbed := b.serveGuests(t, time.Duration(seconds)*time.Second)
	_, most := b.memory(t)
	busy = processTime(t, b.Pid()) - busy
	tries, cores := stop()
	t.Logf("attacks: %s; %.2f cores, and %.2f of mcpbridge", tries, cores, busy.Seconds()/float64(seconds))
	t.Logf("memory: %d MiB before, %d MiB at most; p99 of a call: %v undisturbed, %v under attack", before>>20, most>>20, p99(quiet), p99(disturbed))
	if most > mostMemory {
		t.Errorf("%d MiB of memory under attack, want at most %d", most>>20, mostMemory>>20)
	}
	for _, limit := range []string{"memory", "capabilities"} {
		if b.refused(t, limit) == 0 {
			t.Errorf("limits.%s was never hit, want an attack that does so", limit)
		}
	}
	if seconds < longRun {
		return // a ratio of times, and what takes minutes, say nothing in a short run
	}
	if want := max(2*p99(quiet), 20*time.Millisecond); p99(disturbed) > want {
		t.Errorf("p99 under attack = %v, want at most %v", p99(disturbed), want)
	}
	if cores > 1.1*attackCPU {
		t.Errorf("the attackers took %.2f cores, want %.2f", cores, attackCPU)
	}
	b.wantMemoryBack(t, before)
}

// wantMemoryBack waits until the process has little more memory than before, without
// troubling it.
func (b *bridge) wantMemoryBack(t *testing.T, before int64) {
	t.Helper()
	begun := time.Now()
	for {
		now, _ := b.memory(t)
		if now <= before+mostLeft {
			t.Logf("memory: %d MiB %v after", now>>20, time.Since(begun).Round(time.Second))
			return
		}
		if time.Since(begun) > leftWithin {
			t.Errorf("%d MiB of memory %v after, want at most %d more than the %d before", now>>20, leftWithin, mostLeft>>20, before>>20)
			return
		}
		time.Sleep(time.Second)
	}
}

// startAttackers has a process attack addr until stop is called, which returns how often
// it did what, and how many cores it used.
func startAttackers(t *testing.T, addr string) (stop func() (tries string, cores float64)) {
	t.Helper()
	begun := time.Now()
	p, err := process.Start("attackers", []string{attackAddr + "=" + addr}, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return func() (string, float64) {
		took, used := time.Since(begun), processTime(t, p.Pid())
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		return strings.ReplaceAll(strings.TrimSpace(p.Log()), "\n", ", "), used.Seconds() / took.Seconds()
	}
}

// processTime returns how much CPU time a process has used.
func processTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // what is before may hold spaces
	fields := strings.Fields(rest)
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * time.Second / 100 // clock ticks
}
