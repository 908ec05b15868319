package trunk

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/listen"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	restartStreams = 100
	restartURIs    = 50
	recovery       = 2 * time.Minute // what a restart may take until all is told
)

// id returns request ids of both types, some of which differ in type alone.
func id(i int) string {
	if i%2 == 1 {
		return fmt.Sprintf(`"%d"`, i-1)
	}
	return fmt.Sprint(i)
}

// fan opens streams on the URIs, every one of which at least two streams have,
// and waits until all are acknowledged in full.
func (w *world) fan() []*stream {
	w.t.Helper()
	var streams []*stream
	for i := range restartStreams {
		f := filter{Tools: i%4 == 0, URIs: []string{item(i % restartURIs)}}
		if other := item((i*7 + 3) % restartURIs); i%3 == 0 && other != f.URIs[0] {
			f.URIs = append(f.URIs, other)
		}
		s := w.open(id(i), f)
		w.t.Cleanup(s.Close)
		streams = append(streams, s)
	}
	for _, s := range streams {
		w.wantAck(s)
	}
	return streams
}

// wantAck waits for the acknowledgment of all that s wants.
func (w *world) wantAck(s *stream) {
	w.t.Helper()
	_ = s.Wait(recovery) // what is missing is said below
	ack, _ := s.Ack()
	if !slices.Equal(ack.URIs, s.Want.URIs) || ack.Tools != s.Want.Tools {
		_, problems := s.Status()
		w.t.Fatalf("stream %s on %+v was acknowledged %+v; problems %q", s.ID, s.Want, ack, problems)
	}
}

func union(streams []*stream) map[string]bool {
	uris := make(map[string]bool)
	for _, s := range streams {
		for _, uri := range s.Want.URIs {
			uris[uri] = true
		}
	}
	return uris
}

// wantTold waits until every stream was told of each of its topics since then.
func (w *world) wantTold(streams []*stream, since time.Time) {
	w.t.Helper()
	rig.Until(w.t, recovery, "synthetic notifications", func() string {
		for _, s := range streams {
			if untold := s.Untold(since.UnixNano()); len(untold) > 0 {
				end, problems := s.Status()
				return fmt.Sprintf("stream %s (%s, %q) was not told of %q", s.ID, end, problems, untold)
			}
		}
		return ""
	})
	w.t.Logf("all %d streams were told of all their topics %v after", len(streams), time.Since(since).Round(time.Millisecond))
}

// wantOpen wants the streams open and without a fault.
func (w *world) wantOpen(streams []*stream) {
	w.t.Helper()
	for _, s := range streams {
		if end, problems := s.Status(); end != listen.Open || len(problems) > 0 {
			w.t.Errorf("stream %s is %s, problems %q", s.ID, end, problems)
		}
	}
}

// wantHealed wants what must hold after every fault: all streams open and told,
// one subscription per URI, which works.
func (w *world) wantHealed(streams []*stream, since time.Time) {
	w.t.Helper()
	w.wantTold(streams, since)
	w.wantOpen(streams)
	w.wantSubscribed(recovery, union(streams))
	settled := time.Now()
	for uri := range union(streams) {
		w.server.touch(1, uri)
	}
	w.server.change("tools")
	w.wantTold(streams, settled)
	w.wantOpen(streams)
}

// The server dies twice: only the first time there is no rest before it is tried
// again, and the second time it stays away for a while, unless mcpbridge itself
// starts it.
func TestM2L37ServerKilled(t *testing.T) {
	t.Parallel()
	for _, setup := range []setup{{}, {eventIDs: true}, {proxy: true}, {stdio: true}} {
		t.Run(setup.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup)
			streams := w.fan()
			w.wantSubscribed(recovery, union(streams))
			if n := len(union(streams)); n != restartURIs {
				t.Fatalf("the streams are on %d URIs, want %d", n, restartURIs)
			}
			for _, down := range []time.Duration{0, 3 * time.Second} {
				killed := time.Now()
				w.server.restart(down)
				w.wantHealed(streams, killed)
			}
		})
	}
}

// Only the stream that carries notifications upstream is cut, and what changes
// meanwhile is not to be lost.
func TestM2L37GetStreamCut(t *testing.T) {
	t.Parallel()
	for _, setup := range []setup{{}, {eventIDs: true}, {proxy: true}} {
		for _, how := range []string{"abrupt", "clean"} {
			t.Run(setup.String()+" "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, setup)
				streams := w.fan()
				w.server.touch(1, item(0)) // an event, which has an id if any has
				for _, hold := range []time.Duration{0, 300 * time.Millisecond} {
					w.server.cut(how, hold)
					cut := time.Now()
					w.server.touch(1, item(1))
					w.wantHealed(streams, cut)
				}
			})
		}
	}
}

// What the server that was started anew refuses ends the streams that have it,
// and no others (M2L-37).
func TestM2L37RestartedServerRefuses(t *testing.T) {
	t.Parallel()
	for _, setup := range []setup{{}, {stdio: true}} {
		t.Run(setup.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup)
			streams := w.fan()
			refusedURIs := []string{item(3), item(14), item(15), item(26), item(49)}
			w.server.refuseThese(refusedURIs...)
			killed := time.Now()
			w.server.restart(0)
			var kept, ended []*stream
			for _, s := range streams {
				if slices.ContainsFunc(s.Want.URIs, func(uri string) bool { return slices.Contains(refusedURIs, uri) }) {
					ended = append(ended, s)
				} else {
					kept = append(kept, s)
				}
			}
			w.wantGraceful(ended)
			w.wantHealed(kept, killed)
			if n := len(union(kept)); n != restartURIs-len(refusedURIs) {
				t.Errorf("the streams that stay are on %d URIs, want %d", n, restartURIs-len(refusedURIs))
			}
			t.Logf("%d streams ended gracefully, %d stayed open", len(ended), len(kept))
		})
	}
}

// wantGraceful waits until the streams have ended with their result.
func (w *world) wantGraceful(streams []*stream) {
	w.t.Helper()
	deadline := time.After(recovery)
	for _, s := range streams {
		select {
		case <-s.Done:
		case <-deadline:
			w.t.Fatalf("stream %s on %q is still open", s.ID, s.Want.URIs)
		}
		if end, problems := s.Status(); end != listen.Graceful || len(problems) > 0 {
			w.t.Errorf("stream %s ended %s, problems %q, want graceful", s.ID, end, problems)
		}
	}
}

// A session may be made, and die, while the server puts off the stream that would
// tell of it.
func TestM2L37KilledBeforeTheStream(t *testing.T) {
	t.Parallel()
	for _, setup := range []setup{{}, {proxy: true}} {
		t.Run(setup.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup)
			streams := w.fan()
			w.server.restart(0)
			w.server.cut("abrupt", recovery)
			// A call finds the session lost; the next one is put off, not refused.
			w.wantSubscribed(recovery, union(streams))
			killed := time.Now()
			w.server.restart(0)
			w.wantHealed(streams, killed)
		})
	}
}
