package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// programs has the mcpbridge that the tests start.
var programs rig.Binaries

func TestMain(m *testing.M) {
	rig.Parallel(6)
	os.Exit(rig.Main(m, "", &programs))
}

// peer returns the absolute path of a file of interop/.
func peer(path string) string {
	abs, err := filepath.Abs("../../" + path)
	if err != nil {
		panic(err) // there is no working directory
	}
	return abs
}

// node and fastmcp return command lines of JavaScript and Python programs.
func node(argv ...string) []string {
	return append([]string{peer("node/node_modules/.bin/node"), peer(argv[0])}, argv[1:]...)
}

func fastmcp(argv ...string) []string {
	return append([]string{peer("bin/python-fastmcp/bin/python"), peer(argv[0])}, argv[1:]...)
}

// A target is where a client program is to go: to a URL, or to a command that it starts.
type target struct {
	URL  string   `json:"url,omitempty"`
	Argv []string `json:"argv,omitempty"`
}

// start starts a server that is told where to listen, and returns the URL of its
// endpoint.
func start(t *testing.T, command func(addr, port string) (env, argv []string)) string {
	t.Helper()
	addr := rig.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	env, argv := command(addr, port)
	p, err := process.Start(filepath.Base(argv[1]), env, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	url := "http://" + addr + "/mcp"
	if err := p.Ready(ctx, url, 0); err != nil {
		t.Fatal(err)
	}
	return url
}

// serve starts mcpbridge before servers, each of them a line of the configuration, and
// returns the URL that the endpoints' names are added to.
func serve(t *testing.T, servers ...string) string {
	t.Helper()
	listen, admin := rig.FreeAddr(t), rig.FreeAddr(t)
	// A thousand schedules make more tasks than one client may have otherwise.
	config := fmt.Sprintf("listen: %s\nadmin: %s\nlimits: {tasks: 100000, tasks_each: 100000}\nservers:\n  %s\n", listen, admin, strings.Join(servers, "\n  "))
	p := programs.StartBridge(t, config, admin)
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return "http://" + listen + "/mcp/"
}

// atURL and atCommand are lines of a configuration.
func atURL(name, url string) string { return fmt.Sprintf("%s: {url: %q}", name, url) }

func atCommand(name string, argv []string) string {
	args, _ := json.Marshal(argv[1:]) // strings
	return fmt.Sprintf("%s: {command: %q, args: %s}", name, argv[0], args)
}

// wrap returns the command line of mcpbridge before a server.
func wrap(argv ...string) []string {
	return process.WithCache(append([]string{programs.Bridge, "wrap"}, argv...)...)
}

// ask runs a client program with in on its standard input, and reads into out what it
// prints.
func ask(t *testing.T, argv []string, in, out any) {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var log process.Tail
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), &log
	found, err := cmd.Output()
	if err != nil {
		t.Fatalf("the client ended with %v; it wrote:\n%s", err, log.String())
	}
	if err := json.Unmarshal(found, out); err != nil {
		t.Fatalf("the client printed %q: %v; it wrote:\n%s", found, err, log.String())
	}
}

// same compares two structs, and names the fields that differ.
func same[T any](t *testing.T, got, want *T) {
	t.Helper()
	a, b := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := range a.NumField() {
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			t.Errorf("%s is %+v, want %+v", a.Type().Field(i).Name, x, y)
		}
	}
}
