package transport

import (
	"os"
	"syscall"
)

// openOutput opens the standard output of a child: a socket instead of a pipe, as Node
// does. A pipe is read and written page by page under one lock: a message of 1 MiB takes
// a fifth more time, and a large pipe counts towards the user's limit of 64 MiB for
// pipes. A child can't open /dev/stdout by name, because sockets don't allow that, as
// under Node.
func openOutput() (r, w *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	err = syscall.SetNonblock(fds[0], true) // our end, before os.NewFile: otherwise it has no deadlines
	r, w = os.NewFile(uintptr(fds[0]), "stdout"), os.NewFile(uintptr(fds[1]), "stdout")
	if err != nil {
		closeAll(r, w)
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return r, w, nil
}
