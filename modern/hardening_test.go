package modern

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// One client with many profiles must not have any number of listen requests on
// their way to a server that is slow to answer them.
func TestListensOfOneShareAreBoundedAtOnce(t *testing.T) {
	const profiles, most = 400, 256
	p := newUpPeer(t)
	var now, peak atomic.Int32
	p.on["subscriptions/listen"] = func(_ http.ResponseWriter, r *http.Request, _ wire.Message) {
		for n := now.Add(1); ; {
			if old := peak.Load(); n <= old || peak.CompareAndSwap(old, n) {
				break
			}
		}
		defer now.Add(-1)
		<-r.Context().Done()
	}
	b := p.back(BackOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var watches sync.WaitGroup
	for i := range profiles {
		watches.Go(func() {
			profile := exchange.Profile{Scope: fmt.Sprint("scripted/", i), Capabilities: []byte(`{}`)}
			topic := fanout.Topic{Scope: profile.Scope, Kind: fanout.ToolsListChanged}
			if _, release, err := b.Watch(ctx, profile, []fanout.Topic{topic}); err == nil {
				release()
			}
		})
	}
	watches.Wait()
	if n := peak.Load(); n < most/4 || n > most {
		t.Errorf("%d listen requests were on their way at once, want %d at most", n, most)
	}
}

// Who asks for ever new topics does not have the server asked as often.
func TestListensOfOneShareAreBoundedInRate(t *testing.T) {
	onWatchStage(t, watchOptions{rate: 10}, func(t *testing.T, st *watchStage) {
		var acked sync.WaitGroup
		begun := time.Now()
		for i := range 500 {
			c := st.goWatch(uriTopic(fmt.Sprint("u", i)))
			acked.Go(func() { <-c })
			time.Sleep(20 * time.Millisecond)
		}
		acked.Wait()
		// Each may have one merge follow.
		most := 2 * int(100+10*time.Since(begun).Seconds())
		if n := len(st.server.requests()); n > most {
			t.Errorf("%d listen requests within %v, want %d at most", n, time.Since(begun), most)
		}
	})
}
