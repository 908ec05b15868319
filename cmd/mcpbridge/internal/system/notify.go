package system

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// writeTime bounds how long a datagram may wait for the manager to read others.
const writeTime = time.Second

// A Notifier tells the service manager that has started the process how it is: that it
// serves, reads its configuration anew, ends, and is alive. It writes the datagrams of
// sd_notify(3), which systemd reads, and others too. All methods of a nil Notifier do
// nothing. It is safe for concurrent use.
type Notifier struct {
	// Set by NewNotifier, read-only after.
	conn  *net.UnixConn
	log   *slog.Logger
	every time.Duration // between signs of life; zero for none
	stop  chan struct{} // closed by Close
	once  sync.Once
	alive sync.WaitGroup // the goroutine of Watch
}

// NewNotifier returns a Notifier for the socket that the environment names, and nil if
// there is none, or nobody listens there, which is logged.
func NewNotifier(environ []string, log *slog.Logger) *Notifier {
	path, _ := value.Environ(environ)("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		log.Warn("the service manager is told nothing: its socket can't be reached", "socket", path, "err", err)
		return nil
	}
	return &Notifier{conn: conn, log: log, every: interval(environ, os.Getpid()), stop: make(chan struct{})}
}

// interval returns how often the manager wants a sign of life, twice as often as it
// insists on; zero for never.
func interval(environ []string, pid int) time.Duration {
	env := value.Environ(environ)
	every, _ := env("WATCHDOG_USEC")
	of, _ := env("WATCHDOG_PID")
	micros, err := strconv.ParseInt(every, 10, 64)
	if err != nil || micros <= 0 || of != "" && of != strconv.Itoa(pid) {
		return 0
	}
	return time.Duration(micros) * time.Microsecond / 2
}

// Ready says that the process serves, also after Reloading, and how it is in words.
func (n *Notifier) Ready(status string) { n.send("READY=1", "STATUS="+line(status)) }

// Reloading says that the configuration is being read anew. Ready follows.
func (n *Notifier) Reloading() {
	n.send("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonic(), 10), "STATUS=reading the configuration")
}

// Stopping says that the process is ending, and how long that may take.
func (n *Notifier) Stopping(status string, within time.Duration) {
	n.send("STOPPING=1", "STATUS="+line(status), fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", within.Microseconds()))
}

// Watch gives signs of life until Close, if the manager wants any. Each follows a call of
// alive, which returns as long as the process works.
func (n *Notifier) Watch(alive func()) {
	if n == nil || n.every == 0 {
		return
	}
	n.alive.Go(func() { n.watch(alive) }) // until Close
}

func (n *Notifier) watch(alive func()) {
	t := time.NewTicker(n.every)
	defer t.Stop()
	for {
		select {
		case <-n.stop:
			return
		case <-t.C:
			alive()
			n.send("WATCHDOG=1")
		}
	}
}

// Close ends the signs of life, and the connection to the manager.
func (n *Notifier) Close() {
	if n == nil {
		return
	}
	n.once.Do(func() { close(n.stop) })
	n.alive.Wait()
	_ = n.conn.Close() // datagrams: nothing is left to be written
}

func (n *Notifier) send(lines ...string) {
	if n == nil {
		return
	}
	err := n.conn.SetWriteDeadline(time.Now().Add(writeTime))
	if err == nil {
		_, err = n.conn.Write([]byte(strings.Join(lines, "\n")))
	}
	if err != nil {
		n.log.Warn("the service manager could not be told", "what", lines[0], "err", err)
	}
}

// line makes a text one line: each line of a datagram is an assignment.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }
