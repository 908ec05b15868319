package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a peer, or mcpbridge, running in a process group of its own.
type process struct {
	name string
	cmd  *exec.Cmd
	log  tail
	done chan struct{} // closed when the process has been waited for
	err  error         // how it ended; read only after done is closed
}

// start runs a program. env is added to the test's own environment.
func start(name string, env []string, argv ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A grandchild that kept the pipe would hold up Wait after the child's end.
	p.cmd.WaitDelay = 2 * time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go p.wait() // ends with the process
	return p, nil
}

func (p *process) wait() {
	defer close(p.done)
	p.err = p.cmd.Wait()
}

// stop asks the process to end, and kills its group if it has not within d.
// It returns an error if that was needed or the process ended otherwise than
// by the signal or with status 0.
func (p *process) stop(d time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return p.ending()
	case <-time.After(d):
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
		return fmt.Errorf("%s did not end within %v of SIGTERM; its log ends:\n%s", p.name, d, p.log.String())
	}
}

func (p *process) ending() error {
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGTERM {
			return nil
		}
		return fmt.Errorf("%s ended with %v; its log ends:\n%s", p.name, p.err, p.log.String())
	}
	return p.err
}

// ready waits until an HTTP request to url is answered, whatever the status,
// or with want if that is not 0.
func (p *process) ready(ctx context.Context, url string, want int) error {
	for {
		res, err := http.Get(url)
		if err == nil {
			res.Body.Close()
			if want == 0 || res.StatusCode == want {
				return nil
			}
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready: %v; its log ends:\n%s", p.name, p.err, p.log.String())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %v %v; its log ends:\n%s", p.name, res, err, p.log.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// withMark returns the running processes whose command line holds the mark.
func withMark(mark string) ([]string, error) {
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

// freeAddr returns a loopback address that nobody listens on at the moment.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// tail keeps the last 8 KiB written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailSize = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if over := t.buf.Len() - tailSize; over > 0 {
		t.buf.Next(over)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
