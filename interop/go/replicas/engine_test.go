package replicas

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// An engine is what replicas share few facts by. It is at one address for as long as a test
// takes, whether it runs or not.
type engine interface {
	addr() string
	url(addr string) string // for a replica that reaches it at addr
	start()                 // with what it had when it was stopped
	stop()
	wipe()          // forgets all; it must not run
	messages() int  // how many it has got since it was started
	keys() []string // what it keeps, the records of dead members included
}

// The credentials that replicas have.
const engineUser, enginePassword = "group-of-three", "open sesame"

func newEngine(t *testing.T, name string) engine {
	t.Helper()
	var e engine
	switch name {
	case nats:
		e = &natsEngine{t: t, at: rig.FreeAddr(t), dir: t.TempDir()}
	case redis:
		e = newRedisEngine(t)
	case sentinels:
		e = newSentinels(t)
	case natsNodes:
		e = newNodes(t)
	default:
		return nil
	}
	e.start()
	t.Cleanup(e.stop)
	return e
}

func port(addr string) int {
	_, text, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(text)
	return n
}

// A natsEngine is a nats-server with JetStream, in a process of its own: in this one it would have
// to wait for all else that the tests do.
type natsEngine struct {
	t       *testing.T
	at, dir string
	node    *node // nil while it is stopped
}

func (e *natsEngine) addr() string { return e.at }
func (e *natsEngine) url(addr string) string {
	return "nats://" + engineUser + ":" + strings.ReplaceAll(enginePassword, " ", "%20") + "@" + addr
}

func (e *natsEngine) start() {
	e.t.Helper()
	e.node = &node{nodeConfig: nodeConfig{Name: "engine", Dir: e.dir, Port: port(e.at), Monitor: port(rig.FreeAddr(e.t))}}
	e.node.start(e.t)
	rig.Until(e.t, process.StartTime, "nats-server is ready", e.node.health)
}

func (e *natsEngine) stop() {
	if e.node == nil {
		return
	}
	if err := e.node.p.Stop(time.Minute); err != nil {
		e.t.Error(err)
	}
	e.node = nil
}

func (e *natsEngine) wipe() { empty(e.t, e.dir) }

func (e *natsEngine) messages() int {
	text, err := e.node.ask("varz")
	var v server.Varz
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return int(v.InMsgs)
}

func (e *natsEngine) keys() (keys []string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := natsgo.Connect(e.url(e.at))
	if err != nil {
		e.t.Fatal(err)
	}
	defer c.Close()
	js, err := jetstream.New(c)
	if err != nil {
		e.t.Fatal(err)
	}
	for bucket := range js.KeyValueStoreNames(ctx).Name() {
		kv, err := js.KeyValue(ctx, bucket)
		if err != nil {
			e.t.Fatal(err)
		}
		list, err := kv.ListKeys(ctx)
		if err != nil {
			e.t.Fatal(err)
		}
		for key := range list.Keys() {
			keys = append(keys, bucket+"/"+key)
		}
	}
	return keys
}

// empty removes what is in a directory.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if e := os.RemoveAll(filepath.Join(dir, entry.Name())); err == nil {
			err = e
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A redisEngine is a redis-server in a process of its own, which writes down all that it is
// told.
type redisEngine struct {
	t       *testing.T
	at, dir string
	args    []string         // more of them
	p       *process.Process // nil while it is stopped
}

func newRedisEngine(t *testing.T, args ...string) *redisEngine {
	return &redisEngine{t: t, at: rig.FreeAddr(t), dir: t.TempDir(), args: args}
}

func (e *redisEngine) addr() string { return e.at }
func (e *redisEngine) url(addr string) string {
	return "redis://default:" + strings.ReplaceAll(enginePassword, " ", "%20") + "@" + addr
}

func (e *redisEngine) start() {
	e.t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		e.t.Fatalf("%v: interop/redis installs Debian's", err)
	}
	e.p, err = process.Start("redis-server", nil, append([]string{program, "--bind", "127.0.0.1", "--port", fmt.Sprint(port(e.at)), "--dir", e.dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "no", "--requirepass", enginePassword, "--masterauth", enginePassword}, e.args...)...)
	if err != nil {
		e.t.Fatal(err)
	}
	rig.Until(e.t, process.StartTime, "redis-server is ready", func() string {
		if _, err := e.ask("PING"); err != nil {
			return err.Error() + "\n" + e.p.Log()
		}
		return ""
	})
}

func (e *redisEngine) stop() {
	if e.p == nil {
		return
	}
	if err := e.p.Stop(time.Minute); err != nil {
		e.t.Error(err)
	}
	e.p = nil
}

func (e *redisEngine) wipe() { empty(e.t, e.dir) }

func (e *redisEngine) messages() int {
	info, err := e.ask("INFO", "stats")
	if err != nil {
		e.t.Fatal(err)
	}
	for _, line := range info {
		if n, ok := strings.CutPrefix(line, "total_commands_processed:"); ok {
			count, _ := strconv.Atoi(n)
			return count
		}
	}
	e.t.Fatalf("redis says %q", info)
	return 0
}

func (e *redisEngine) keys() []string {
	keys, err := e.ask("KEYS", "*")
	if err != nil {
		e.t.Fatal(err)
	}
	return keys
}

// ask puts a command to the server and returns the lines of the answer.
func (e *redisEngine) ask(words ...string) (lines []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host, port, _ := net.SplitHostPort(e.at)
	cmd := exec.CommandContext(ctx, "redis-cli", append([]string{"-h", host, "-p", port, "--no-auth-warning"}, words...)...)
	cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+enginePassword)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("redis-cli %v: %v: %s", words, err, out)
	}
	for s := bufio.NewScanner(strings.NewReader(string(out))); s.Scan(); {
		if line := s.Text(); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 && strings.HasPrefix(lines[0], "NOAUTH") {
		return nil, fmt.Errorf("redis-cli %v: %s", words, lines[0])
	}
	return lines, nil
}
