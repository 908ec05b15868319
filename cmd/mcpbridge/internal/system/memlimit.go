// Package system is about what the process has from the system around it: the memory that
// it may take, to which the runtime is made to keep, and the service manager, which is told
// how the process is.
package system

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

const (
	// ServeMemory is the most that limits.memory is by default, WrapMemory under wrap.
	ServeMemory = 4 << 30
	WrapMemory  = 512 << 20
	// someMemory is what a machine is taken to have that does not say.
	someMemory = 2 << 30
)

// BoundMemory settles limits.memory, which is at most so much unless it was configured,
// and has the collector work towards it unless the user has set GOMEMLIMIT.
func BoundMemory(c *config.Config, most int64, environ []string) {
	if c.Limits.Memory == 0 {
		c.Limits.Memory = max(min(machineMemory("/")/2, most), config.MinMemory)
	}
	if !slices.ContainsFunc(environ, setsMemoryLimit) {
		debug.SetMemoryLimit(c.Limits.Memory)
	}
}

func setsMemoryLimit(entry string) bool { return strings.HasPrefix(entry, "GOMEMLIMIT=") }

// machineMemory returns the bytes of memory that the machine has, or that the control
// group of the process may use, if that is less. root is where the files of Linux are;
// other systems have none.
func machineMemory(root string) int64 {
	least := int64(math.MaxInt64)
	for _, name := range groupLimits(root) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if n, perr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && perr == nil && n > 0 {
			least = min(least, n) // "max" is no number
		}
	}
	if n := totalMemory(root); n > 0 {
		least = min(least, n)
	}
	if least == math.MaxInt64 {
		return someMemory
	}
	return least
}

// groupLimits returns the files that may bound the process: of its control group and of
// those around it, in both versions.
func groupLimits(root string) []string {
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup")) // none: no groups
	var names []string
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case parts[1] != "":
			continue
		}
		for dir := filepath.Clean("/" + parts[2]); ; dir = filepath.Dir(dir) {
			names = append(names, filepath.Join(mount, dir, file))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return names
}

// totalMemory returns what the machine has, or zero.
func totalMemory(root string) int64 {
	text, _ := os.ReadFile(filepath.Join(root, "proc/meminfo")) // none: unknown
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}
