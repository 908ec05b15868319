package http1

import "syscall"

// A SomeWriter writes to a file or a connection without waiting. One goroutine writes at a time. A nil
// SomeWriter writes nothing.
type SomeWriter struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) bool
	part    []byte // what is left to write
}

// NewSomeWriter returns a SomeWriter; nil where only writes that wait are possible.
func NewSomeWriter(to syscall.Conn) *SomeWriter {
	raw, err := to.SyscallConn()
	if !canWriteSome || err != nil {
		return nil
	}
	w := &SomeWriter{raw: raw}
	w.attempt = func(fd uintptr) bool {
		w.part = w.part[writeSome(fd, w.part):]
		return true
	}
	return w
}

// Write writes what there is room for, and returns how many bytes that was. Of an error a write that
// waits tells.
func (w *SomeWriter) Write(p []byte) int {
	if w == nil || len(p) == 0 {
		return 0
	}
	w.part = p
	_ = w.raw.Write(w.attempt)
	n := len(p) - len(w.part)
	w.part = nil
	return n
}
