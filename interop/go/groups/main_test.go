package groups

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

var programs rig.Binaries

func TestMain(m *testing.M) { os.Exit(rig.Main(m, "", &programs)) }

// answerTime bounds an answer. It is long: the machine may be busy.
const answerTime = 3 * time.Minute

// peer returns the absolute path of a file of interop/.
func peer(path string) string {
	abs, err := filepath.Abs("../../" + path)
	if err != nil {
		panic(err) // there is no working directory
	}
	return abs
}

func exists(path string) bool {
	_, err := os.Stat(peer(path))
	return err == nil
}

func node(argv ...string) []string {
	return append([]string{peer("node/node_modules/.bin/node"), peer(argv[0])}, argv[1:]...)
}

func python(venv, script string, argv ...string) []string {
	return append([]string{peer("bin/" + venv + "/bin/python"), peer("python/" + script)}, argv...)
}

// A bridge is an mcpbridge as a process.
type bridge struct {
	*process.Process
	listen, admin, config string
}

// startBridge starts one with servers and groups, as YAML.
func startBridge(t *testing.T, servers, groups string) *bridge {
	t.Helper()
	b := &bridge{listen: rig.FreeAddr(t), admin: rig.FreeAddr(t), config: filepath.Join(t.TempDir(), "mcpbridge.yaml")}
	text := fmt.Sprintf("listen: %s\nadmin: %s\nlog: {level: warn}\nservers:\n%sgroups:\n%s", b.listen, b.admin, servers, groups)
	b.Process = programs.StartBridgeFile(t, b.config, text, b.admin)
	t.Cleanup(func() {
		if err := b.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("mcpbridge wrote:\n%s", b.Log())
		}
	})
	return b
}

// startServer starts a server that listens, and returns its address. {addr}, {port} and {dir}
// are filled in.
func startServer(t *testing.T, name string, env, argv []string) (addr string, p *process.Process) {
	t.Helper()
	addr = rig.FreeAddr(t)
	p, err := process.Start(name, filled(env, addr, ""), filled(argv, addr, "")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, p.Log())
		}
		p.Kill()
	})
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	if err := p.Ready(ctx, "http://"+addr+"/", 0); err != nil {
		t.Fatal(err)
	}
	return addr, p
}

func filled(words []string, addr, dir string) (out []string) {
	_, port, _ := net.SplitHostPort(addr)
	r := strings.NewReplacer("{addr}", addr, "{port}", port, "{dir}", dir)
	for _, w := range words {
		out = append(out, r.Replace(w))
	}
	return out
}

// inline returns a value as JSON, which is YAML, too.
func inline(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings alone
	}
	return string(text)
}

// wrapped is an mcpbridge wrap of a group by its name, with the configuration of b.
func (b *bridge) wrapped(group string) remote.Target {
	argv := process.WithCache("env", "MCPBRIDGE_LOG__LEVEL=warn", programs.Bridge, "wrap", group, "-c", b.config)
	return remote.Target{Transport: "stdio", Argv: argv}
}

// goroutines returns what all goroutines of mcpbridge do.
func (b *bridge) goroutines() string {
	res, err := http.Get("http://" + b.admin + "/debug/pprof/goroutine?debug=2")
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
