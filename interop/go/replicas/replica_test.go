package replicas

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A replica is one mcpbridge, at addresses that stay the same for as long as the test takes.
type replica struct {
	w      *world
	name   string // A, B or C
	listen string // its address for clients
	admin  string // for us
	peer   string // and for the other replicas
	config string // file
	log    string // file, of all its processes

	inbound  *link                      // before peer; nil without links
	toEngine *link                      // between it and the engine; nil without links or without an engine
	program  string                     // what is started
	env      []string                   // more of it
	edit     func(config string) string // what is other here than at the others; nil for nothing
	p        *process.Process           // nil while it does not run
	launched time.Time
	took     time.Duration // until it was ready
}

func (r *replica) url(server string) string { return "http://" + r.listen + "/mcp/" + server }

// old is the URL of a server for HTTP+SSE.
func (r *replica) old(server string) string { return "http://" + r.listen + "/sse/" + server }

// advertised is how others reach it.
func (r *replica) advertised() string {
	if r.inbound != nil {
		return r.inbound.addr
	}
	return r.peer
}

// launch starts the program, and does not wait for it.
func (r *replica) launch() {
	t := r.w.t
	t.Helper()
	r.launched = time.Now()
	var err error
	r.p, err = process.Start("replica "+r.name, slices.Concat([]string{"LOG=" + r.log}, r.w.setup.env, r.env),
		"/bin/sh", "-c", `exec "$0" "$@" >>"$LOG" 2>&1`, r.program, "serve", "-c", r.config)
	if err != nil {
		t.Fatal(err)
	}
	r.w.enter(r.p.Pid(), r.name)
	if r.inbound != nil {
		r.inbound.open()
	}
}

// start starts the program, and waits until it is ready.
func (r *replica) start() {
	t := r.w.t
	t.Helper()
	r.launch()
	r.waitReady()
}

func (r *replica) waitReady() {
	t := r.w.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.StartTime)
	defer cancel()
	if err := r.p.Ready(ctx, "http://"+r.admin+"/readyz", http.StatusOK); err != nil {
		t.Fatalf("%v\n%s", err, r.tail(4<<10))
	}
	r.took = time.Since(r.launched)
}

// kill ends it as kill -9 does. Its addresses refuse connections then.
func (r *replica) kill() {
	if r.p == nil {
		return
	}
	if r.inbound != nil {
		r.inbound.shut()
	}
	r.p.Kill()
	r.ended()
}

// stop ends it by SIGTERM, within d.
func (r *replica) stop(d time.Duration) {
	t := r.w.t
	t.Helper()
	if r.p == nil {
		return
	}
	_ = syscall.Kill(r.p.Pid(), syscall.SIGCONT) // a test may have failed in between
	if err := r.p.Stop(d); err != nil {
		t.Errorf("%v\n%s", err, r.tail(4<<10))
	}
	r.ended()
	if r.inbound != nil {
		r.inbound.shut()
	}
}

func (r *replica) ended() {
	r.w.leave(r.p.Pid())
	r.p = nil
}

func (r *replica) pause()  { r.signal(syscall.SIGSTOP) }
func (r *replica) resume() { r.signal(syscall.SIGCONT) }

func (r *replica) signal(s syscall.Signal) {
	r.w.t.Helper()
	if err := syscall.Kill(r.p.Pid(), s); err != nil {
		r.w.t.Fatal(err)
	}
}

func (r *replica) isReady() bool {
	res, err := r.w.us.Get("http://" + r.admin + "/readyz")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // the connection is used again
	return res.StatusCode == http.StatusOK
}

// gauges returns the samples of /metrics, by name with labels.
func (r *replica) gauges() map[string]float64 {
	r.w.t.Helper()
	return rig.Gauges(r.w.t, r.w.us, r.admin)
}

// get returns what a page of admin says.
func (r *replica) get(path string) (int, string) {
	r.w.t.Helper()
	res, err := r.w.us.Get("http://" + r.admin + path)
	if err != nil {
		r.w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.w.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// tail returns the last n bytes of the log.
func (r *replica) tail(n int) string {
	text, err := os.ReadFile(r.log)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s's log ends:\n%s", r.name, text[max(0, len(text)-n):])
}

// artefacts is where the files of a failed test are left.
func artefacts(t testing.TB) string {
	dir, err := filepath.Abs(filepath.Join("../../bin/replicas", strings.ReplaceAll(t.Name(), "/", "-")))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
