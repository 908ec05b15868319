package system

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMachineMemory(t *testing.T) {
	const total = "MemTotal:        8388608 kB\nMemFree: 1 kB\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing known", nil, someMemory},
		{"the machine's", map[string]string{"proc/meminfo": total}, 8 << 30},
		{"its group's", map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n"}, 1 << 30},
		{"that of the group around it", map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "2147483648\n"}, 2 << 30},
		{"of the first version", map[string]string{"proc/meminfo": total, "proc/self/cgroup": "4:cpu,memory:/x\n1:cpu:/\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "3221225472\n"}, 3 << 30},
		{"a bound beyond the machine", map[string]string{"proc/meminfo": total, "proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8 << 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range tt.files {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := machineMemory(root); got != tt.want {
				t.Errorf("machineMemory = %d, want %d", got, tt.want)
			}
		})
	}
}
