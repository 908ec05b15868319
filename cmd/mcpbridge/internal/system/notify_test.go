//go:build unix

package system

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A manager reads what the process tells it.
func manager(t *testing.T) (socket string, next func() string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); _ = os.RemoveAll(dir) })
	return socket, func() string {
		t.Helper()
		buf := make([]byte, 4096)
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestWhatTheManagerReads(t *testing.T) {
	socket, next := manager(t)
	n := NewNotifier([]string{"NOTIFY_SOCKET=/nowhere", "NOTIFY_SOCKET=" + socket}, slog.New(slog.DiscardHandler))
	defer n.Close()
	for _, tt := range []struct {
		tell func()
		want string // a regular expression
	}{
		{func() { n.Ready("serving 2 servers") }, `READY=1\nSTATUS=serving 2 servers`},
		{n.Reloading, `RELOADING=1\nMONOTONIC_USEC=\d+\nSTATUS=reading the configuration`},
		{func() { n.Ready("refused:\nMAINPID=1") }, `READY=1\nSTATUS=refused: MAINPID=1`},
		{func() { n.Stopping("draining", 90*time.Second) }, `STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=90000000`},
	} {
		tt.tell()
		if got := next(); !regexp.MustCompile("^" + tt.want + "$").MatchString(got) {
			t.Errorf("the manager read %q, want %s", got, tt.want)
		}
	}
}

func TestSignsOfLife(t *testing.T) {
	socket, next := manager(t)
	n := NewNotifier([]string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=20000", fmt.Sprintf("WATCHDOG_PID=%d", os.Getpid())}, slog.New(slog.DiscardHandler))
	var asked atomic.Int32
	n.Watch(func() { asked.Add(1) })
	for range 3 {
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("the manager read %q, want a sign of life", got)
		}
	}
	n.Close()
	if asked.Load() < 3 {
		t.Errorf("it was asked %d times whether the process is alive, want 3 at least", asked.Load())
	}
}

// A process that hangs gives no sign of life.
func TestNoSignOfLifeFromWhatHangs(t *testing.T) {
	socket, next := manager(t)
	n := NewNotifier([]string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=1000"}, slog.New(slog.DiscardHandler))
	hangs, asked := make(chan struct{}), make(chan struct{}, 1)
	var released atomic.Bool
	n.Watch(func() {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-hangs
	})
	<-asked
	go func() {
		time.Sleep(20 * time.Millisecond) // many times the interval
		released.Store(true)
		close(hangs)
	}()
	if got := next(); got != "WATCHDOG=1" || !released.Load() {
		t.Errorf("the manager read %q, while the process hung: %v", got, !released.Load())
	}
	n.Close()
}

func TestInterval(t *testing.T) {
	for _, tt := range []struct {
		environ string
		want    time.Duration
	}{
		{"WATCHDOG_USEC=30000000", 15 * time.Second},
		{"WATCHDOG_USEC=30000000 WATCHDOG_PID=7", 15 * time.Second},
		{"WATCHDOG_USEC=30000000 WATCHDOG_PID=8", 0}, // another process's
		{"WATCHDOG_USEC=-1", 0},
		{"WATCHDOG_USEC=soon", 0},
		{"HOME=/", 0},
	} {
		if got := interval(strings.Fields(tt.environ), 7); got != tt.want {
			t.Errorf("interval(%s) = %v, want %v", tt.environ, got, tt.want)
		}
	}
}

func TestWithoutAManager(t *testing.T) {
	var log strings.Builder
	if n := NewNotifier(nil, slog.New(slog.NewTextHandler(io.Discard, nil))); n != nil {
		t.Errorf("New without a socket = %v, want nil", n)
	}
	n := NewNotifier([]string{"NOTIFY_SOCKET=/no/such/socket"}, slog.New(slog.NewTextHandler(&log, nil)))
	if n != nil || !strings.Contains(log.String(), "/no/such/socket") {
		t.Errorf("New = %v, and logs %q; want nil and a line that names the socket", n, log.String())
	}
	n.Ready("x")
	n.Reloading()
	n.Stopping("x", time.Second)
	n.Watch(nil)
	n.Close()
}
