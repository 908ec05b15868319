package engines

import (
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
	"github.com/mcpbridge/mcpbridge/internal/replicas/replicastest"
)

// redisWorld is a redis-server that writes each change to its disk.
type redisWorld struct {
	t    *testing.T
	port int
	dir  string
	cmd  *exec.Cmd
}

func TestRedis(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("redis-server is missing; interop/redis installs it")
	}
	replicastest.Suite(t, directly, func(t *testing.T) replicastest.World {
		w := &redisWorld{t: t, port: freePort(t), dir: t.TempDir()}
		w.Start(false)
		t.Cleanup(w.Stop)
		return w
	})
}

func (w *redisWorld) Start(empty bool) {
	w.t.Helper()
	if empty {
		clear(w.t, w.dir)
	}
	w.cmd = exec.Command("redis-server", "--port", strconv.Itoa(w.port), "--bind", "127.0.0.1", "--dir", w.dir,
		"--requirepass", "open sesame", "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--loglevel", "warning")
	w.cmd.Stderr = os.Stderr
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(w.port))
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("redis-server is not there: %v", err)
		}
	}
}

func (w *redisWorld) Stop() {
	w.cmd.Process.Signal(syscall.SIGTERM)
	w.cmd.Wait()
}

func (w *redisWorld) Engine(t *testing.T) (replicas.Engine, func(bool)) {
	p := newProxy(t, w.port)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level()}))
	s, err := rediskv.Open(rediskv.Options{URL: "redis://:open%20sesame@" + p.addr() + "/2", Prefix: "test", Name: "test", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, member.New(s, member.Options{Logger: log})), p.stall
}
