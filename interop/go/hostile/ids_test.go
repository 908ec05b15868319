//go:build linux

package hostile

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

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestBoundedListenerIDs has events sent to streams whose ids are as long as may be, and
// to those that were let in with longer ones: each event repeats the id of its stream.
func TestBoundedListenerIDs(t *testing.T) {
	const streams, events = 15, 10
	b := startBridge(t, "legacy")
	var l listeners
	var open sync.WaitGroup
	ctx, leave := context.WithCancel(t.Context())
	defer l.all.Wait()
	defer leave()
	for range streams {
		for _, size := range []int{1000, 3 << 20} {
			open.Go(func() { l.open(t, ctx, newClient(b.addr, "127.0.0.2"), text(size)) })
		}
	}
	open.Wait()
	if n := l.streams.Load(); n < streams {
		t.Fatalf("%d streams are open, want %d", n, streams)
	}
	for n := range int64(events) {
		b.server.tell(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		rig.Until(t, 2*time.Minute, "an event on each stream", func() string {
			if got := l.events.Load(); got < (n+1)*streams {
				return fmt.Sprintf("%d of %d", got, (n+1)*streams)
			}
			return ""
		})
	}
	if read, most := l.bytes.Load(), int64(streams*(events+1)*2<<10); read > most {
		t.Errorf("%d events on %d streams were %d bytes, want at most %d", l.events.Load(), l.streams.Load(), read, most)
	}
	if b.refused(t, "id") != streams {
		t.Errorf("limits.id was hit %v times, want %d", b.refused(t, "id"), streams)
	}
}

// listeners count what comes on listen streams.
type listeners struct {
	all                    sync.WaitGroup // who reads
	streams, events, bytes atomic.Int64
}

// open opens a stream, if it may, and has it read until ctx ends. It returns when the
// stream is acknowledged.
func (l *listeners) open(t *testing.T, ctx context.Context, c *client, id string) {
	res, err := c.post(ctx, modernHeaders("subscriptions/listen", ""), listen(`"`+id+`"`, `{"toolsListChanged":true}`))
	if err != nil {
		t.Error(err)
		return
	}
	lines := bufio.NewReader(res.Body)
	if res.StatusCode == http.StatusOK {
		l.streams.Add(1)
		for line, err := "", error(nil); err == nil && !strings.Contains(line, "subscriptions/acknowledged"); {
			line, err = lines.ReadString('\n')
		}
	}
	l.all.Go(func() {
		defer res.Body.Close()
		for {
			line, err := lines.ReadString('\n')
			if l.bytes.Add(int64(len(line))); strings.Contains(line, "notifications/tools/list_changed") {
				l.events.Add(1)
			}
			if err != nil {
				return // with ctx
			}
		}
	})
}
