package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

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
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
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
	if err := w.bridge.Stop(20 * time.Second); err != nil {
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
	var wg sync.WaitGroup
	todo := make(chan int)
	errs := make(chan error, n)
	for range min(n, 64) {
		wg.Go(func() { // ends when todo is closed
			for i := range todo {
				if err := do(i); err != nil {
					errs <- fmt.Errorf("%d of %d: %w", i, n, err)
				}
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	wg.Wait()
	select {
	case err := <-errs:
		t.Fatalf("%v (and %d more)", err, len(errs))
	default:
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

// A touch is a line of the server's ledger.
type touch struct {
	At  int64
	URI string
}

// tell puts a command to the server's /admin and decodes what it answers.
func (w *world) tell(method, path string, values url.Values, into any) error {
	req, err := http.NewRequest(method, "http://"+w.ears+"/admin/"+path+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := w.us.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d: %s, %v", path, res.StatusCode, text, err)
	}
	return json.Unmarshal(text, into)
}

// touch makes a new version of each URI and returns when.
func (w *world) touch(uris ...string) ([]touch, error) {
	var out struct{ Entries []touch }
	err := w.tell(http.MethodPost, "touch", url.Values{"uri": uris}, &out)
	return out.Entries, err
}

// A view is what the server has to listen for.
type view struct {
	Streams map[string]any
	URIs    map[string]int // streams per URI
}

func (w *world) view() (v view, err error) {
	return v, w.tell(http.MethodGet, "subscriptions", nil, &v)
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
