package back

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// One client with many profiles must not have any number of listen requests on
// their way to a server that is slow to answer them.
func TestListensOfOneShareAreBoundedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const profiles, most = 400, 256
		p := newMemoryPeer(t)
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
		b := p.back(Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var watches sync.WaitGroup
		for i := range profiles {
			watches.Go(func() {
				profile := mcp.Profile{Scope: fmt.Sprint("scripted/", i), Capabilities: []byte(`{}`)}
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
	})
}

// A server that floods a listen stream with what nobody needs must not have it read
// as fast as it comes.
func TestFloodOfAListenStreamIsRationed(t *testing.T) {
	const maxFlood = 128 << 20 // more than is read in 4 s
	for name, text := range map[string]string{
		"comments":      ": nothing\n",
		"notifications": "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n",
	} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			p := newMemoryPeer(t)
			var sent atomic.Int64
			p.on["subscriptions/listen"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
				upStream(w)(ackText, `{"toolsListChanged":true}`, m.ID)
				piece := []byte(strings.Repeat(text, 32<<10/len(text)))
				for r.Context().Err() == nil {
					if sent.Load() > maxFlood { // or time would stand still
						t.Errorf("more than %d bytes of the flood were read", maxFlood)
						return
					}
					n, err := w.Write(piece)
					if sent.Add(int64(n)); err != nil {
						return
					}
				}
			}
			b := p.back(Options{Options: upstream.Options{Changes: wantsAll{}}})
			_, release, err := b.Watch(t.Context(), listenProfile, []fanout.Topic{{Scope: listenProfile.Scope, Kind: fanout.ToolsListChanged}})
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			time.Sleep(3 * time.Second)
			begun, before := time.Now(), sent.Load()
			time.Sleep(time.Second)
			if n, most := sent.Load()-before, int64(float64(4<<20)*time.Since(begun).Seconds()); n > most {
				t.Errorf("%d bytes of the flood were read within %v, want %d at most", n, time.Since(begun), most)
			}
		})
	}
}

// wantsAll is an audience that wants everything, and does nothing with it.
type wantsAll struct{}

func (wantsAll) Publish(fanout.Event)     {}
func (wantsAll) Wanted(fanout.Topic) bool { return true }
func (wantsAll) End(fanout.Topic, error)  {}

// A server that ends its listen streams at once must not be asked for the next in a loop,
// whether they brought something or not.
func TestListenStreamThatEndsAtOnceIsNoLoop(t *testing.T) {
	const watched, most = 2 * time.Second, 20
	for name, text := range map[string]string{"nothing": "", "an event": listText} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			p := newMemoryPeer(t)
			var asked atomic.Int32
			p.on["subscriptions/listen"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				asked.Add(1)
				send := upStream(w)
				send(ackText, `{"toolsListChanged":true}`, m.ID)
				if text != "" {
					send(text, "tools", m.ID)
				}
				send(endText, m.ID)
			}
			b := p.back(Options{Options: upstream.Options{Changes: wantsAll{}}})
			_, release, err := b.Watch(t.Context(), listenProfile, []fanout.Topic{{Scope: listenProfile.Scope, Kind: fanout.ToolsListChanged}})
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			time.Sleep(watched)
			if n := asked.Load(); n < 2 || n > most {
				t.Errorf("%d listen streams within %v, want 2 to %d", n, watched, most)
			}
		})
	}
}
