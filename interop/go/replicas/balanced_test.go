package replicas

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestThroughTheBalancer takes clients of others, WebSockets, tasks and kept results through the
// balancer, each request to the next replica.
func TestThroughTheBalancer(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		tasks := startTasks(t)
		w := newWorld(t, setup{engine: engine, warn: true, servers: fmt.Sprintf("  tasks: {url: %q}\n", tasks),
			server: `, cache: {resources/read: {ttl: 10m, scope: public, keep: true}}`})
		for _, f := range []*fixture{w.legacy, w.modern} {
			t.Run("go-sdk on "+f.name, func(t *testing.T) { w.visit(t, f) })
			t.Run("WebSocket on "+f.name, func(t *testing.T) {
				for i := range 2 * len(w.replicas) {
					w.overSocket(w.door(), f.name, func(how string) string { return fmt.Sprint(how, i) })
				}
			})
		}
		t.Run("tasks", func(t *testing.T) { w.playTasks(t, tasks) })
		t.Run("keep", func(t *testing.T) {
			f, uri := w.legacy, w.legacy.item(1)
			var streams []*stream
			for range w.replicas {
				streams = append(streams, w.mustListen(w.door(), f.name, uri))
			}
			w.wantKept(t, f, uri)
			for i := range size(60, 1000) {
				w.hearAndRead(t, f, uri, streams, i%len(streams), w.door())
			}
		})
	})
}

// visit calls, reads, follows and lists with go-sdk's client.
func (w *world) visit(t *testing.T, f *fixture) {
	ctx, cancel := context.WithTimeout(t.Context(), recovery)
	defer cancel()
	heard := make(chan string, 64)
	client := mcp.NewClient(&mcp.Implementation{Name: "balanced", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			select {
			case heard <- r.Params.URI:
			default: // there are enough
			}
		},
	})
	cs, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: w.balancer.url(f.name)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	for i := range 2 * len(w.replicas) {
		res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "mark", Arguments: map[string]any{"nonce": fmt.Sprint("visit ", i)}})
		if err != nil || res.IsError {
			t.Fatalf("CallTool = %+v, %v", res, err)
		}
		if list, err := cs.ListTools(ctx, nil); err != nil || len(list.Tools) == 0 {
			t.Errorf("ListTools = %+v, %v", list, err)
		}
	}
	uri := f.item(7)
	if err := cs.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	until(t, "the client is told of a first change", func() bool { // its stream may open later
		f.touch(uri)
		time.Sleep(100 * time.Millisecond)
		return len(heard) > 0
	})
	for range 2 * len(w.replicas) {
		w.hears(t, f, uri, heard)
	}
	if res, err := cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri}); err != nil || len(res.Contents) == 0 {
		t.Errorf("ReadResource = %+v, %v", res, err)
	}
}

// hears changes a resource, and waits until the client is told.
func (w *world) hears(t *testing.T, f *fixture, uri string, heard chan string) {
	t.Helper()
	for len(heard) > 0 {
		<-heard // of an earlier change, told once more
	}
	f.touch(uri)
	select {
	case got := <-heard:
		if got != uri {
			t.Errorf("the client is told of %s, want %s", got, uri)
		}
	case <-time.After(soon):
		t.Errorf("the client is not told of %s", uri)
	}
}

// A taskClient plays with tasks: FastMCP's.
func taskClient() []string {
	return []string{absolute("../../bin/python-fastmcp/bin/python"), absolute("../../python/fastmcp_client.py")}
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		panic(err) // there is no working directory
	}
	return abs
}

// startTasks starts a server with tasks, and returns its URL.
func startTasks(t *testing.T) string {
	t.Helper()
	addr := rig.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	p, err := process.Start("fastmcp", nil, absolute("../../bin/python-fastmcp/bin/python"), absolute("../../python/fastmcp_server.py"), "--transport", "http", "--port", port)
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

// playTasks wants a client to find the same through the balancer as directly, and a task that it
// has left there, too.
func (w *world) playTasks(t *testing.T, direct string) {
	play := func(url, label, resume string) (found map[string]any) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		told := map[string]string{"url": url, "label": t.Name() + label}
		if resume != "" {
			told["resume"] = resume
		}
		errand, err := json.Marshal(told)
		if err != nil {
			t.Fatal(err)
		}
		argv := taskClient()
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, time.Second
		var said bytes.Buffer
		cmd.Stdin, cmd.Stderr = bytes.NewReader(errand), &said
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &found)
		}
		if err != nil {
			t.Fatalf("the client: %v: %s\n%s", err, out, said.Bytes())
		}
		return found
	}
	want, got := play(direct, " directly", ""), play(w.balancer.url("tasks"), " balanced", "")
	left, _ := got["left"].(string)
	delete(want, "left")
	if delete(got, "left"); !reflect.DeepEqual(got, want) {
		t.Errorf("through the balancer the client finds\n%v\ndirectly\n%v", got, want)
	}
	if left == "" {
		t.Fatal("the client left no task behind")
	}
	if found := play(w.balancer.url("tasks"), " balanced", left); found["status"] != "completed" || found["entered"] != 1.0 {
		t.Errorf("the task that was left: %v, want it completed, and run once", found)
	}
}
