package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// StartTime is what a program has to be ready. It is longer than any takes, on a busy machine, too:
// only one that hangs needs it.
const StartTime = 3 * time.Minute

// A Process is a program that runs in a process group of its own.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  Tail
	done chan struct{} // closed when the process has been waited for
	err  error         // how it ended; read only after done is closed
}

// Start runs a program. env is added to the test's own environment. Whoever gets
// a Process calls Stop or Kill. On Linux, the program is killed if the test ends
// without that.
func Start(name string, env []string, argv ...string) (*Process, error) {
	p := &Process{name: name, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A grandchild that kept the pipe would hold up Wait after the child's end.
	p.cmd.WaitDelay = 2 * time.Second
	if err := start(p.cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go p.wait() // ends with the process
	return p, nil
}

func (p *Process) wait() {
	defer close(p.done)
	p.err = p.cmd.Wait()
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log returns the last 128 KiB that the process wrote.
func (p *Process) Log() string { return p.log.String() }

// Kill ends the process group as kill -9 does, and waits for the process.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended by itself
	<-p.done
}

// Stop asks the process to end, and kills its group if it has not within d. It
// returns an error if that was needed, or if the process ended otherwise than by
// the signal or with status 0.
func (p *Process) Stop(d time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return p.ending()
	case <-time.After(d):
		p.Kill()
		return fmt.Errorf("%s did not end within %v of SIGTERM; its log ends:\n%s", p.name, d, p.Log())
	}
}

func (p *Process) ending() error {
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGTERM {
			return nil
		}
		return fmt.Errorf("%s ended with %v; its log ends:\n%s", p.name, p.err, p.Log())
	}
	return p.err
}

// Ready waits until an HTTP GET of url is answered, whatever the status, or with
// the status want if that is not 0.
func (p *Process) Ready(ctx context.Context, url string, want int) error {
	for {
		status, err := get(ctx, url)
		answered := err == nil && (want == 0 || status == want)
		select {
		case <-p.done: // whoever answered was another
			return fmt.Errorf("%s ended before it was ready: %v; its log ends:\n%s", p.name, p.err, p.Log())
		default:
		}
		if answered {
			return nil
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: status %d, %v; its log ends:\n%s", p.name, status, err, p.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func get(ctx context.Context, url string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// WithMark returns the running processes whose command line holds the mark.
func WithMark(mark string) ([]string, error) {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,args=").Output()
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, mark) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found, nil
}

// FreeAddr returns a loopback address that nobody listens on, and that no test of
// any process is given again while this one runs: the UDP port of the same number
// is kept until then as a sign for the others. The port is below those that Linux
// gives to clients: none of them may have taken it when a server that was killed
// wants it again.
func FreeAddr() (string, error) {
	var last error
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(12_000))
		sign, err := net.ListenPacket("udp", addr)
		if err != nil {
			last = err
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			last = errors.Join(err, sign.Close())
			continue
		}
		keep(sign)
		return addr, l.Close()
	}
	return "", fmt.Errorf("finding a free port: %w", last)
}

// signs are the ports that FreeAddr gave out: closed, they would be given out anew.
var signs struct {
	mu   sync.Mutex // guards kept
	kept []net.PacketConn
}

func keep(sign net.PacketConn) {
	signs.mu.Lock()
	defer signs.mu.Unlock()
	signs.kept = append(signs.kept, sign)
}

// A Tail is a writer that keeps the last 128 KiB written to it. Safe for concurrent
// use.
type Tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailSize = 128 << 10

// Write keeps b.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if over := t.buf.Len() - tailSize; over > 0 {
		t.buf.Next(over)
	}
	return len(b), nil
}

// String returns what is kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
