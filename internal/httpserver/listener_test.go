package httpserver

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// accepted returns both ends of a connection made through Listen.
func accepted(t *testing.T, timeout time.Duration) (server *conn, client *net.TCPConn) {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0", timeout)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = l.Close(), c.Close(), s.Close() })
	return s.(*conn), c.(*net.TCPConn)
}

// A reader that has stalled must block a write soon. Without the bound the
// kernel's send buffer alone takes megabytes on loopback.
func TestM2L39StalledReaderBlocksAWrite(t *testing.T) {
	server, client := accepted(t, time.Minute)
	if err := client.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if err := server.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	const most = 512 << 10
	n, err := 0, error(nil)
	for err == nil && n <= most {
		var m int
		m, err = server.Write(make([]byte, 4<<10))
		n += m
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || n > most {
		t.Errorf("a stalled reader took %d bytes, then %v; want at most %d and a deadline", n, err, most)
	}
}

// A large result has more room in the kernel, but not without bound.
func TestM2L39StalledReaderBlocksALargeWrite(t *testing.T) {
	server, client := accepted(t, time.Minute)
	if err := client.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if err := server.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	const most = 768 << 10
	n, err := server.Write(make([]byte, 16<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) || n > most {
		t.Errorf("a stalled reader took %d bytes, then %v; want at most %d and a deadline", n, err, most)
	}
}

func TestListenNamesTheAddress(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if again, err := Listen(t.Context(), l.Addr().String(), 0); err == nil {
		_ = again.Close()
		t.Error("Listen on a taken address = nil, want an error")
	}
}

// A deadline that was set before a Read ends it, and so does one that is set while
// it waits; one that was taken back does not.
func TestReadDeadlines(t *testing.T) {
	past := time.Unix(1, 0)
	server, client := accepted(t, time.Minute)
	read := func() error {
		_, err := server.Read(make([]byte, 1))
		return err
	}
	set := func(f func(time.Time) error, to time.Time) {
		t.Helper()
		if err := f(to); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second finds it set
		set(server.SetReadDeadline, past)
		if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read beyond its deadline = %v", err)
		}
	}
	set(server.SetDeadline, time.Time{})
	if _, err := client.Write([]byte("ab")); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Errorf("Read without a deadline = %v", err)
	}
	set(server.SetDeadline, past)
	if n, err := server.WriteTo(io.Discard); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("WriteTo beyond its deadline = %d, %v", n, err)
	}
	set(server.SetReadDeadline, time.Time{})
	if err := read(); err != nil {
		t.Errorf("Read after the deadline was taken back = %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- read() }()
	for reading := false; !reading; {
		reading = server.reads.calls.Load() > 0
		runtime.Gosched()
	}
	set(server.SetReadDeadline, past)
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read whose deadline came while it waited = %v", err)
	}
}

// A write of what the kernel has room for keeps the deadline, too; one that waits keeps
// that which was set before it, and that which is set while it waits.
func TestWriteDeadlines(t *testing.T) {
	server, client := accepted(t, time.Minute)
	if err := client.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	set := func(to time.Time) {
		t.Helper()
		if err := server.SetWriteDeadline(to); err != nil {
			t.Fatal(err)
		}
	}
	set(time.Unix(1, 0))
	if n, err := server.Write([]byte("a")); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Write beyond its deadline = %d, %v", n, err)
	}
	set(time.Time{})
	if n, err := server.Write([]byte("b")); n != 1 || err != nil {
		t.Errorf("Write after the deadline was taken back = %d, %v", n, err)
	}
	stalled := make([]byte, 1<<20)
	set(time.Now().Add(500 * time.Millisecond))
	n, err := server.Write(stalled)
	if n == 0 || n == len(stalled) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Write to a client that does not read = %d, %v", n, err)
	}
	set(time.Time{})
	done := make(chan error, 1)
	go func() {
		_, err := server.Write(stalled)
		done <- err
	}()
	for writing := false; !writing; {
		writing = server.writes.calls.Load() > 0
		runtime.Gosched()
	}
	set(time.Unix(1, 0))
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Write whose deadline came while it waited = %v", err)
	}
	set(time.Time{})
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; {
		_, err = server.Write([]byte("c"))
	}
	if op := (*net.OpError)(nil); !errors.As(err, &op) || op.Op != "write" {
		t.Errorf("Write to a client that has gone = %v, want the connection's own error", err)
	}
}
