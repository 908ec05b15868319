package sessions

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// recovery is what mcpbridge may take to be where it was.
const recovery = 2 * time.Minute

const (
	few     = 50 // sessions
	someFew = 5  // URIs each
)

// someSessions are subscribed to the same few URIs.
func (w *world) someSessions() []*session {
	w.t.Helper()
	all := w.openAll(few)
	each(w.t, few, func(i int) error {
		for _, uri := range itemURIs(someFew) {
			if err := all[i].subscribe(w.t.Context(), uri); err != nil {
				return err
			}
		}
		return nil
	})
	w.wantStreams(recovery, 4, itemURIs(someFew))
	return all
}

// wantCues waits until each session was told of each URI since a time.
func (w *world) wantCues(all []*session, uris []string, since time.Time, what string) {
	w.t.Helper()
	rig.Until(w.t, recovery, what, func() string {
		for i, s := range all {
			for _, uri := range uris {
				if s.heardSince(uri, since.UnixNano(), time.Now().UnixNano()) == 0 {
					return fmt.Sprintf("session %d was not told of %s", i, uri)
				}
			}
		}
		return ""
	})
}

// wantWorking holds that the sessions live, and hear of changes.
func (w *world) wantWorking(all []*session, uris []string) {
	w.t.Helper()
	each(w.t, len(all), func(i int) error { return all[i].alive(w.t.Context()) })
	since := time.Now()
	if _, err := w.touch(uris...); err != nil {
		w.t.Fatal(err)
	}
	w.wantCues(all, uris, since, "changes made afterwards arrive")
	each(w.t, len(all), func(i int) error {
		_, err := all[i].call(w.t.Context(), "tools/call", map[string]any{"name": "test_simple_text", "arguments": struct{}{}})
		return err
	})
}

// TestL2M27ServerKilled proves that sessions outlive their server: restarted, it
// is listened to as before, and each session is told to refetch what may have
// changed meanwhile.
func TestL2M27ServerKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.someSessions()
	w.us.CloseIdleConnections()
	w.server.Kill()
	killed := time.Now()
	_, err := all[0].call(t.Context(), "tools/call", map[string]any{"name": "test_simple_text", "arguments": struct{}{}})
	if e := (*rpcError)(nil); !errors.As(err, &e) || !strings.Contains(e.Message, "modern") {
		t.Errorf("a call without a server gave %v, want a JSON-RPC error that names it", err)
	}
	w.startServer()
	w.wantCues(all, itemURIs(someFew), killed, "sessions are told to refetch")
	w.wantStreams(recovery, 4, itemURIs(someFew))
	w.wantWorking(all, itemURIs(someFew))
}

// TestL2M27StreamsEnded proves the same for a server that ends its listen streams
// and lives on; and that this brings no storm of new ones.
func TestL2M27StreamsEnded(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"graceful", "abrupt"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			all := w.someSessions()
			before := w.listens()
			since := time.Now()
			var cut struct{ Streams int }
			if err := w.tell().Tell(http.MethodPost, "cut", url.Values{"how": {how}}, &cut); err != nil {
				t.Fatal(err)
			}
			if cut.Streams == 0 {
				t.Fatal("there was no stream to end")
			}
			w.wantCues(all, itemURIs(someFew), since, "sessions are told to refetch")
			w.wantStreams(recovery, 4, itemURIs(someFew))
			if n := w.listens() - before; n > 10 {
				t.Errorf("%d streams were opened for the %d that ended", n, cut.Streams)
			}
			w.wantWorking(all, itemURIs(someFew))
		})
	}
}

// listens counts how many listen streams the server was asked for.
func (w *world) listens() (n int) {
	w.t.Helper()
	var all struct{ Entries []struct{ What string } }
	if err := w.tell().Tell(http.MethodGet, "ledger", nil, &all); err != nil {
		w.t.Fatal(err)
	}
	for _, e := range all.Entries {
		if e.What == "listen" {
			n++
		}
	}
	return n
}

// TestL2M20Refused proves that the error for a URI which the server does not
// acknowledge names it, and that others are granted all the same.
func TestL2M20Refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refused, granted := itemURI(1), itemURI(2)
	w.refuses(refused)
	s := w.openAll(1)[0]
	err := s.subscribe(t.Context(), refused)
	if e := (*rpcError)(nil); !errors.As(err, &e) || !strings.Contains(e.Message, refused) {
		t.Errorf("subscribing to a refused URI gave %v, want a JSON-RPC error that names %s", err, refused)
	}
	if err := s.subscribe(t.Context(), granted); err != nil {
		t.Error(err)
	}
	w.wantWorking([]*session{s}, []string{granted})
	if n := s.heardSince(refused, 0, time.Now().UnixNano()); n != 0 {
		t.Errorf("%d updates of a URI whose subscription was refused", n)
	}
}

// refuses writes the file of refusals.
func (w *world) refuses(uris ...string) {
	w.t.Helper()
	if err := os.WriteFile(w.refuse, []byte(strings.Join(uris, "\n")), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// TestL2M23RestartedServerRefuses proves that a URI which a restarted server no
// longer acknowledges gets a last cue, that the others work on, and that it is
// heard of again once the server has it back.
func TestL2M23RestartedServerRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.someSessions()
	lost, kept := itemURI(0), itemURIs(someFew)[1:]
	w.refuses(lost)
	w.us.CloseIdleConnections()
	w.server.Kill()
	killed := time.Now()
	w.startServer()
	w.wantCues(all, itemURIs(someFew), killed, "sessions are told to refetch, of the lost URI too")
	w.wantStreams(recovery, 4, kept)
	w.wantWorking(all, kept)
	w.refuses()
	w.wantStreams(2*recovery, 4, itemURIs(someFew))
	w.wantWorking(all, itemURIs(someFew))
}
