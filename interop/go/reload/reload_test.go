//go:build linux

package reload

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	fixedServers = 4
	streamsEach  = 50
	callEvery    = 20 * time.Millisecond
)

// A stream is a listen stream that has to stay open, and to hear of each change.
type stream struct {
	server  int
	heard   atomic.Int64
	ended   atomic.Bool
	resp    *http.Response
	stopped *atomic.Bool
}

func (b *bridge) listen(server int, stopped *atomic.Bool) *stream {
	b.t.Helper()
	resp, err := b.http.Do(b.request(fmt.Sprint("s", server), "subscriptions/listen", "", `"notifications":{"resourceSubscriptions":["`+noteURI+`"]}`))
	if err != nil || resp.StatusCode != 200 {
		b.t.Fatalf("listen = %v, %v", resp, err)
	}
	s := &stream{server: server, resp: resp, stopped: stopped}
	acked := make(chan struct{})
	go s.read(acked) // ends with the response
	select {
	case <-acked:
	case <-time.After(time.Minute):
		b.t.Fatal("no acknowledgment")
	}
	return s
}

func (s *stream) read(acked chan struct{}) {
	for lines := bufio.NewScanner(s.resp.Body); lines.Scan(); {
		switch text := lines.Text(); {
		case strings.Contains(text, "subscriptions/acknowledged"):
			close(acked)
		case strings.Contains(text, "resources/updated"):
			s.heard.Add(1)
		}
	}
	if !s.stopped.Load() {
		s.ended.Store(true)
	}
}

// One server of five changes again and again, and between that files are broken: calls of the
// other four don't fail, their streams hear of each change, and nothing is left.
func TestReload(t *testing.T) {
	reloads := int(rig.Int(t, "RELOADS", 40))
	servers, urls := make([]*mcp.Server, fixedServers), make([]string, fixedServers)
	for i := range servers {
		servers[i] = newServer()
		urls[i] = serveHTTP(t, servers[i])
	}
	b := startBridge(t, urls)
	var stopped atomic.Bool
	var streams []*stream
	for i := range fixedServers * streamsEach {
		streams = append(streams, b.listen(i%fixedServers, &stopped))
	}
	if err := b.call("changing", "first"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var calls, changes atomic.Int64
	wg.Go(func() { b.keepCalling(ctx, &calls) })
	wg.Go(func() { b.keepChanging(ctx, servers, streams, &changes) })
	time.Sleep(2 * time.Second)
	goroutines, descriptors, children := b.gauge("go_goroutines"), b.gauge("process_open_fds"), b.children()

	begin := time.Now()
	for n := range reloads {
		if n%3 == 0 {
			b.write("limits: {body: lots}\n")
			if o := b.reload(); o.OK || o.Line == 0 || !strings.Contains(o.Error, "limits.body") {
				t.Fatalf("a broken file = %+v", o)
			}
		}
		b.write("")
		if o := b.reload(); !o.OK || strings.Join(o.Changed, " ") != "changing" || len(o.Added)+len(o.Removed)+len(o.Renewed) > 0 {
			t.Fatalf("reload %d = %+v", n, o)
		}
		if err := b.call("changing", fmt.Sprint("call", n)); err != nil {
			t.Errorf("call after reload %d: %v", n, err)
		}
	}
	took := time.Since(begin)
	b.eventually("the commands of former servers are gone", func() bool { return b.children() <= children })
	within := func(name string, before, slack int) {
		b.eventually(fmt.Sprintf("%s is about %d again", name, before), func() bool { return b.gauge(name) <= before+slack })
	}
	within("go_goroutines", goroutines, 20) // calls come and go
	within("process_open_fds", descriptors, 10)
	cancel()
	wg.Wait()
	for _, s := range streams {
		if s.ended.Load() {
			t.Errorf("a stream of s%d has ended", s.server)
		}
	}
	t.Logf("%d reloads in %v beside %d streams: %d calls, %d changes of each server; goroutines %d to %d, descriptors %d to %d, children %d to %d", reloads, took.Round(time.Millisecond),
		len(streams), calls.Load(), changes.Load(), goroutines, b.gauge("go_goroutines"), descriptors, b.gauge("process_open_fds"), children, b.children())
	stopped.Store(true)
	for _, s := range streams {
		_ = s.resp.Body.Close()
	}
}

// keepCalling calls servers that stay, fifty times a second. None may fail.
func (b *bridge) keepCalling(ctx context.Context, calls *atomic.Int64) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for tick := time.NewTicker(callEvery); ; {
		select {
		case <-tick.C:
			n := calls.Add(1)
			wg.Go(func() {
				if err := b.call(fmt.Sprint("s", n%fixedServers), fmt.Sprint("n", n)); err != nil {
					b.t.Errorf("call %d: %v", n, err)
				}
			})
		case <-ctx.Done():
			tick.Stop()
			return
		}
	}
}

// keepChanging has servers that stay tell of a change, and waits until all streams have heard
// of it, again and again.
func (b *bridge) keepChanging(ctx context.Context, servers []*mcp.Server, streams []*stream, changes *atomic.Int64) {
	for n := int64(1); ctx.Err() == nil; n++ {
		for _, s := range servers {
			if err := s.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: noteURI}); err != nil {
				b.t.Errorf("change %d: %v", n, err)
			}
		}
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			missing := 0
			for _, s := range streams {
				if s.heard.Load() < n {
					missing++
				}
			}
			if missing == 0 {
				break
			}
			if time.Now().After(deadline) {
				b.t.Errorf("%d streams have not heard of change %d", missing, n)
				return
			}
		}
		changes.Add(1)
		time.Sleep(20 * time.Millisecond)
	}
}
