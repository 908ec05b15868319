package engines

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A process is a redis-server, in any of its roles.
type process struct {
	t    *testing.T
	port int
	dir  string
	args []string
	conf string   // of a file that the process rewrites; empty for none
	tls  []string // by which redis-cli connects
	cmd  *exec.Cmd
}

// newRedis returns a redis-server that does not run yet. The test's end ends it.
func newRedis(t *testing.T, args ...string) *process {
	t.Helper()
	return newProcess(t, append([]string{"--requirepass", password, "--masterauth", password,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--repl-diskless-sync-delay", "0"}, args...)...)
}

func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("redis-server is missing; interop/redis installs it")
	}
	p := &process{t: t, port: freePort(t), dir: t.TempDir(), args: args}
	t.Cleanup(p.kill)
	return p
}

func (p *process) addr() string { return "127.0.0.1:" + strconv.Itoa(p.port) }

func (p *process) start(empty bool) {
	p.t.Helper()
	if empty {
		clear(p.t, p.dir)
	}
	port := "--port"
	if p.tls != nil {
		port = "--tls-port"
	}
	args := []string{port, strconv.Itoa(p.port), "--bind", "127.0.0.1", "--dir", p.dir, "--loglevel", "warning"}
	if p.conf != "" {
		path := filepath.Join(p.dir, "redis.conf")
		if _, err := os.Stat(path); err != nil {
			if err := os.WriteFile(path, []byte(p.conf), 0o600); err != nil {
				p.t.Fatal(err)
			}
		}
		args = append([]string{path}, args...)
	}
	p.cmd = exec.Command("redis-server", append(args, p.args...)...)
	p.cmd.Stderr, p.cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, patience, "redis-server listens", func() bool {
		c, err := net.Dial("tcp", p.addr())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (p *process) stop() { p.end(syscall.SIGTERM) }
func (p *process) kill() { p.end(syscall.SIGKILL) }

func (p *process) end(s syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(s)
	_ = p.cmd.Wait()
	p.cmd = nil
}

// freeze has the process answer nobody, as if its machine were lost, until thaw.
func (p *process) freeze() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) thaw()   { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// ask returns what a server answers, by redis-cli.
func (p *process) ask(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatalf("redis-cli %q: %v: %s", args, err, out)
	}
	return out
}

func (p *process) try(args ...string) (string, error) { return p.as(password, args...) }

func (p *process) as(password string, args ...string) (string, error) {
	cmd := exec.Command("redis-cli", slices.Concat([]string{"-p", p.portText()}, p.tls, args)...)
	cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+password)
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err == nil && (strings.HasPrefix(text, "ERR") || strings.HasPrefix(text, "[ERR")) {
		err = fmt.Errorf("%s", text)
	}
	return text, err
}

func (p *process) portText() string { return strconv.Itoa(p.port) }
