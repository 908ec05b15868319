package replicas

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/ledger"
	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A fixture is legacy-go or modern-go, with its ledger.
type fixture struct {
	w          *world
	name, addr string
	admin      string // where it listens to the test
	ledger     string // file
	argv       []string
	p          *process.Process
}

func newFixture(w *world, name, program string) *fixture {
	w.t.Helper()
	f := &fixture{w: w, name: name, addr: rig.FreeAddr(w.t), ledger: filepath.Join(w.t.TempDir(), "ledger")}
	items := w.setup.items
	if items == 0 {
		items = 60
	}
	f.argv = []string{program, "-http", f.addr, "-ledger", f.ledger, "-items", fmt.Sprint(items)}
	f.admin = f.addr
	if name == "modern" {
		f.admin = rig.FreeAddr(w.t)
		f.argv = append(f.argv, "-admin", f.admin)
	}
	f.start()
	w.t.Cleanup(func() { f.p.Kill() })
	return f
}

func (f *fixture) start() {
	t := f.w.t
	t.Helper()
	var err error
	if f.p, err = process.Start(f.name+"-go", nil, f.argv...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	if err := f.p.Ready(ctx, "http://"+f.admin+"/admin/subscriptions", http.StatusOK); err != nil {
		t.Fatal(err)
	}
}

// item returns the URI of a resource.
func (f *fixture) item(i int) string {
	if f.name == "modern" {
		return fmt.Sprintf("res://item/%03d", i)
	}
	return fmt.Sprintf("res://item/%02d", i)
}

func (f *fixture) list(n int) (uris []string) {
	for i := range n {
		uris = append(uris, f.item(i))
	}
	return uris
}

// An entry is a line of a server's ledger.
type entry = ledger.Entry

func (f *fixture) tell() ledger.Admin { return ledger.Admin{Client: f.w.us, Addr: f.admin} }

// touch makes a new version of each URI and returns when.
func (f *fixture) touch(uris ...string) []entry {
	f.w.t.Helper()
	touched, err := f.tell().Touch(1, uris...)
	if err != nil {
		f.w.t.Fatal(err)
	}
	return touched
}

// A view is what a server has to tell changes to: sessions of the legacy one, streams of the
// modern one.
type view struct {
	URIs     map[string]int // sessions or streams per URI
	Sessions map[string][]string
	Streams  map[string]any
}

func (v *view) total() (n int) {
	for _, count := range v.URIs {
		n += count
	}
	return n
}

func (f *fixture) view() (v view) {
	f.w.t.Helper()
	if err := f.tell().Tell(http.MethodGet, "subscriptions", nil, &v); err != nil {
		f.w.t.Fatal(err)
	}
	return v
}

// wantSubscribed waits until the server has one subscription to each of the URIs, and none
// to others, and has had for a while.
func (f *fixture) wantSubscribed(d time.Duration, uris []string) {
	f.w.t.Helper()
	var since time.Time
	rig.Until(f.w.t, d, fmt.Sprintf("one subscription to each of %d URIs", len(uris)), func() string {
		v := f.view()
		for _, uri := range uris {
			if v.URIs[uri] != 1 {
				since = time.Time{}
				return fmt.Sprintf("%s has %d subscriptions to %s, %d in all", f.name, v.URIs[uri], uri, v.total())
			}
		}
		if n := v.total(); n != len(uris) {
			since = time.Time{}
			return fmt.Sprintf("%s has %d subscriptions", f.name, n)
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < time.Second {
			return "settled, but not for long enough to believe it"
		}
		return ""
	})
}

// wantTold waits until each change of a URI is told once by the server: to the one session
// that lives of those that are subscribed. Sessions of replicas that were killed stay, and
// have no stream.
func (f *fixture) wantTold(d time.Duration, uris []string) {
	f.w.t.Helper()
	rig.Until(f.w.t, d, fmt.Sprintf("each of %d URIs is told of once", len(uris)), func() string {
		since := f.touch(uris...)[0].At
		time.Sleep(300 * time.Millisecond)
		told := make(map[string]int)
		for _, e := range f.entries() {
			if e.At >= since && e.What == "sent" && e.Method == "notifications/resources/updated" {
				told[e.URI]++
			}
		}
		for _, uri := range uris {
			if told[uri] != 1 {
				return fmt.Sprintf("a change of %s was told %d times", uri, told[uri])
			}
		}
		return ""
	})
}

// entries reads the ledger.
func (f *fixture) entries() []entry {
	f.w.t.Helper()
	return ledger.Read(f.w.t, f.ledger)
}
