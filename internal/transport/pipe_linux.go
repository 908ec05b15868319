package transport

import (
	"os"
	"syscall"
)

// outputPipe is how many bytes a child may write before it waits for us. The
// kernel's own 64 KiB make both sides take turns over a large message; more than
// this is not worth a user's share of the kernel's memory for pipes, 64 MiB.
const outputPipe = 256 << 10

const setPipeSize = 1031 // F_SETPIPE_SZ, which package syscall lacks

// widen makes a pipe larger if the kernel lets us.
func widen(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) {
			_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, outputPipe) // a narrow pipe serves, too
		})
	}
}
