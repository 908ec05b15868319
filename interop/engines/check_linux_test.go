package engines

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// bridge returns mcpbridge, which MCPBRIDGE names if it is built already.
func bridge(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("MCPBRIDGE"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "mcpbridge")
	if out, err := exec.Command("go", "-C", "../..", "build", "-o", path, "./cmd/mcpbridge").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

const peerKey = "VbY7q+Ws0ZtR2gKd8fq2mz0x"

// A served is an engine with three replicas, of which the last one has TLS.
type served struct {
	t      *testing.T
	bridge string
	engine string // its URL
	peers  [3]string
	tls    string // as in a configuration
}

// config writes a configuration.
func (s *served) config(engine, key, peer, more string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "config.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: \"off\"\nstate_dir: %q\nreplicas: {engine: %q, prefix: test, keys: [%q], peer: %q%s}\nservers: {notebook: {builtin: notebook}}\n",
		s.t.TempDir(), engine, cmp.Or(key, peerKey), cmp.Or(peer, "127.0.0.1:2528"), more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// newServed starts three replicas, which the test's end ends.
func newServed(t *testing.T, engine string) *served {
	t.Helper()
	s := &served{t: t, bridge: bridge(t), engine: engine}
	dir := t.TempDir()
	cert, key, ca := bridgetest.NewAuthority(t, "replicas").Files(dir, bridgetest.Leaf{})
	s.tls = fmt.Sprintf(", tls: {cert: %q, key: %q, client_ca: %q}", cert, key, ca)
	for i := range s.peers {
		s.peers[i] = "127.0.0.1:" + strconv.Itoa(freePort(t))
		more := ""
		if i == 2 {
			more = s.tls
		}
		cmd := exec.Command(s.bridge, "serve", s.config(engine, "", s.peers[i], more))
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		var log bytes.Buffer
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			if _ = cmd.Wait(); t.Failed() {
				t.Logf("replica %d: %s", i, log.String())
			}
		})
	}
	eventually(t, patience, "all replicas are there", func() bool {
		out, _ := s.check(s.config(s.engine, "", "", ""))
		return strings.Contains(out, s.peers[0]) && strings.Contains(out, s.peers[1]) && strings.Contains(out, s.peers[2])
	})
	return s
}

// check returns what mcpbridge check prints, and its exit code.
func (s *served) check(config string) (out string, code int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.bridge, "check", config, "--connect")
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// lines are what check says of the three replicas.
func (s *served) lines(out string) (lines [3]string) {
	for line := range strings.Lines(out) {
		for i, addr := range s.peers {
			if strings.Contains(line, "  "+addr+"  ") {
				lines[i] = strings.TrimSpace(line)
			}
		}
	}
	return lines
}

// checked has a configuration checked from outside in all ways that may differ. wrong is the
// engine's URL with another password, and overTLS with TLS, which the engine has not.
func checked(t *testing.T, engine, wrong, overTLS string) {
	s := newServed(t, engine)
	const yes, keys, wantsTLS, without = "  yes", "  keys: it does not have the first of replicas.keys", "  tls: it wants TLS, and replicas.tls is not set here", "  tls: it is without TLS, and replicas.tls is set here"
	for _, tt := range []struct {
		name, key, more string
		want            [3]string
	}{
		{"good, and without TLS", "", "", [3]string{yes, yes, wantsTLS}},
		{"good, and with TLS", "", s.tls, [3]string{without, without, yes}},
		{"other keys", "n" + peerKey, "", [3]string{keys, keys, wantsTLS}},
	} {
		out, code := s.check(s.config(engine, tt.key, "", tt.more))
		for i, line := range s.lines(out) {
			if !strings.Contains(line, tt.want[i]) || code != 1 || strings.Contains(out, peerKey) {
				t.Errorf("%s: check = %d, %swant %q of replica %d", tt.name, code, out, tt.want[i], i)
			}
		}
	}
	for _, tt := range []struct{ name, engine, want string }{
		{"another password", wrong, " refuses who asks; compare the user and password in replicas.engine"},
		{"TLS that the engine has not", overTLS, " is without TLS"},
		{"nobody", strings.NewReplacer(s.port(), "1").Replace(engine), "it can't be reached: "},
	} {
		out, code := s.check(s.config(tt.engine, "", "", ""))
		if code != 1 || !strings.Contains(out, tt.want) || !strings.Contains(out, "the replicas can't be asked for") || strings.Contains(out, "sesame") {
			t.Errorf("%s: check = %d, %swant %q in it", tt.name, code, out, tt.want)
		}
	}
	s.atAnotherTime()
}

// port is that of the engine.
func (s *served) port() string {
	rest := s.engine[strings.LastIndexByte(s.engine, ':')+1:]
	port, _, _ := strings.Cut(rest, "/")
	return port
}

// about takes what is known to a second for what it should be.
var about = strings.NewReplacer(" 9s ", " 10s ", " 11s ", " 10s ", " 19s ", " 20s ", " 21s ", " 20s ")

// atAnotherTime asks a replica by clocks that differ from its own.
func (s *served) atAnotherTime() {
	g, err := peer.New(peer.Options{Engine: replicastest.Alone(replicas.Replica{Instance: "DDDDDDDD"}), Keys: []string{peerKey}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer g.Close()
	for ahead, want := range map[time.Duration]string{
		0: "", 4 * time.Second: "", -4 * time.Second: "",
		10 * time.Second: "its clock is 10s behind the one here", 20 * time.Second: "its clock is 20s behind the one here", -20 * time.Second: "its clock is 20s ahead of the one here",
	} {
		c := g.Compare(s.t.Context(), replicas.Replica{Addr: s.peers[0]}, func() time.Time { return time.Now().Add(ahead) })
		if want == "" && len(c.Differs) == 0 && c.Instance != "" {
			continue
		}
		if want == "" || len(c.Differs) != 1 || c.Differs[0].What != replicas.DiffersClock || !strings.HasPrefix(about.Replace(c.Differs[0].Text), want) {
			s.t.Errorf("asked by a clock that is %v ahead: %+v, want %q", ahead, c, want)
		}
	}
}

func TestCheckConnectNATS(t *testing.T) {
	t.Parallel()
	w := &natsWorld{t: t, port: freePort(t), dir: t.TempDir()}
	w.Start(false)
	t.Cleanup(w.Stop)
	at := fmt.Sprintf("@127.0.0.1:%d", w.port)
	checked(t, "nats://replica:open%20sesame"+at, "nats://replica:closed%20sesame"+at, "tls://replica:open%20sesame"+at)
}

func TestCheckConnectRedis(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.start(false)
	checked(t, "redis://"+user+r.addr()+"/2", "redis://:closed%2Fsesame@"+r.addr()+"/2", "rediss://"+user+r.addr()+"/2")
}
