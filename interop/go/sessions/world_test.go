package sessions

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/ledger"
	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// items is how many resources the server has that can be touched.
const items = 200

func itemURI(i int) string { return fmt.Sprintf("res://item/%03d", i) }

// A world is a modern server and an mcpbridge in front of it.
type world struct {
	t      *testing.T
	server *process.Process
	bridge *process.Process
	refuse string // file of the URIs that the server refuses

	listen string // mcpbridge's address for clients
	admin  string // and that for us
	addr   string // the server's
	ears   string // the server's /admin
	ledger string // file

	clients *http.Client // that talk to mcpbridge
	us      *http.Client // for all else
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		t: t, refuse: filepath.Join(dir, "refuse"), ledger: filepath.Join(dir, "ledger"),
		listen: rig.FreeAddr(t), admin: rig.FreeAddr(t), addr: rig.FreeAddr(t), ears: rig.FreeAddr(t),
		clients: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
		us:      &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}},
	}
	w.startServer()
	t.Cleanup(func() { w.server.Kill() })
	w.bridge = binaries.StartBridge(t, fmt.Sprintf(
		"listen: %s\nadmin: %s\nlog: {level: warn}\nservers:\n  modern: {url: %q}\n", w.listen, w.admin, "http://"+w.addr+"/mcp"), w.admin)
	t.Cleanup(w.close)
	return w
}

// startServer starts the server where it was before.
func (w *world) startServer() {
	w.t.Helper()
	var err error
	w.server, err = process.Start("modern-go", nil, binaries.Server,
		"-http", w.addr, "-admin", w.ears, "-ledger", w.ledger, "-refuse", w.refuse, "-items", fmt.Sprint(items))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), process.StartTime)
	defer cancel()
	if err := w.server.Ready(ctx, "http://"+w.ears+"/admin/subscriptions", http.StatusOK); err != nil {
		w.t.Fatal(err)
	}
}

// close ends mcpbridge, which must not be dead, nor need to be killed.
func (w *world) close() {
	w.clients.CloseIdleConnections()
	w.us.CloseIdleConnections()
	if w.t.Failed() {
		w.t.Logf("mcpbridge's log ends:\n%s", w.bridge.Log())
	}
	if err := w.bridge.Stop(time.Minute); err != nil {
		w.t.Error(err)
	}
}

// openAll opens n sessions, some at once. They end with the test.
func (w *world) openAll(n int) []*session {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	all := make([]*session, n)
	each(w.t, n, func(i int) (err error) {
		all[i], err = open(ctx, w.clients, "http://"+w.listen+"/mcp/modern")
		return err
	})
	w.t.Cleanup(func() {
		cancel()
		for _, s := range all {
			<-s.done
		}
	})
	return all
}

// each runs do for 0 to n-1, 64 at once, and fails the test with the first error.
func each(t *testing.T, n int, do func(int) error) {
	t.Helper()
	if err := rig.Each(n, 64, do); err != nil {
		t.Fatal(err)
	}
}

// subscribeAll subscribes each session to some of the server's resources, each in
// an order of its own.
func (w *world) subscribeAll(all []*session, some int, seed uint64) {
	w.t.Helper()
	each(w.t, len(all), func(i int) error {
		for _, k := range rand.New(rand.NewPCG(seed, uint64(i))).Perm(items)[:some] {
			if err := all[i].subscribe(w.t.Context(), itemURI(k)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) tell() ledger.Admin { return ledger.Admin{Client: w.us, Addr: w.ears} }

// touch makes a new version of each URI and returns when.
func (w *world) touch(uris ...string) ([]ledger.Entry, error) { return w.tell().Touch(1, uris...) }

// A view is what the server has to listen for.
type view struct {
	Streams map[string]any
	URIs    map[string]int // streams per URI
}

func (w *world) view() (v view, err error) {
	return v, w.tell().Tell(http.MethodGet, "subscriptions", nil, &v)
}

// wantStreams waits until the server has so many streams at most, and each of
// the URIs on one of them, for a while.
func (w *world) wantStreams(d time.Duration, most int, uris []string) {
	w.t.Helper()
	const calm = 3 * time.Second
	var since time.Time
	rig.Until(w.t, d, "streams settle", func() string {
		v, err := w.view()
		why := v.complaint(most, uris)
		if err != nil {
			why = err.Error()
		}
		if why != "" {
			since = time.Time{}
			return why
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < calm {
			return "settled, but not for long enough to believe it"
		}
		return ""
	})
}

func (v *view) complaint(most int, uris []string) string {
	if n := len(v.Streams); n > most || n == 0 {
		return fmt.Sprintf("there are %d streams, want 1 to %d", n, most)
	}
	if i := slices.IndexFunc(uris, func(uri string) bool { return v.URIs[uri] == 0 }); i >= 0 {
		return "no stream is for " + uris[i]
	}
	return ""
}

func itemURIs(n int) (uris []string) {
	for i := range n {
		uris = append(uris, itemURI(i))
	}
	return uris
}
