package transport

import (
	"os"
	"syscall"
)

// openOutput opens what a child writes its messages to: a socket, as programs get
// that are started by Node, and not a pipe. A pipe holds page by page what is read
// and written under one lock: a message of 1 MiB costs a fifth more through one, and
// a wide one counts against a user's 64 MiB for pipes. A child that opens its
// /dev/stdout by name, which sockets don't allow, fails here as it does there.
func openOutput() (r, w *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	err = syscall.SetNonblock(fds[0], true) // ours, before it becomes a file: only so it has deadlines
	r, w = os.NewFile(uintptr(fds[0]), "stdout"), os.NewFile(uintptr(fds[1]), "stdout")
	if err != nil {
		closeAll(r, w)
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return r, w, nil
}
