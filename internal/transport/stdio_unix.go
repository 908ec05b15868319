//go:build unix

package transport

import (
	"errors"
	"os"
	"syscall"
)

// interruptible returns a duplicate of f, with deadlines if it is a pipe or a socket. It
// does not set other files, such as a terminal, to non-blocking mode, because other
// processes share that mode. The duplicate has another number, because a failed write to
// that of standard output ends the process by a signal.
func interruptible(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	fd, err := dup(f)
	if err != nil {
		return nil, err
	}
	if info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
		if err := syscall.SetNonblock(fd, true); err != nil {
			_ = syscall.Close(fd)
			return nil, os.NewSyscallError("setnonblock", err)
		}
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func dup(f *os.File) (fd int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := conn.Control(func(from uintptr) {
		syscall.ForkLock.RLock() // a child must not inherit it
		defer syscall.ForkLock.RUnlock()
		if fd, err = syscall.Dup(int(from)); err == nil {
			syscall.CloseOnExec(fd)
		}
	})
	if err = errors.Join(cerr, os.NewSyscallError("dup", err)); err != nil {
		return 0, err
	}
	return fd, nil
}
