package router

import (
	"slices"
	"strings"
	"testing"
	"time"

	made "github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// watchTogether has replicas watch their server together.
func watchTogether(o *Options) {
	s := made.New(made.Options{Options: upstream.Options{Name: "peer", Logger: o.Logger, Settings: settings.Server{Linger: time.Millisecond},
		ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
	o.Servers[0].OpenPeer = s.OpenPeer
}

// topicsMoved reports whether topics have moved to another replica than the one that was asked first: on a
// busy machine a replica hears late whose they are.
func topicsMoved(all []*replica) bool {
	return slices.ContainsFunc(all, func(r *replica) bool { return strings.Contains(r.logs.String(), "topics have moved") })
}

// Three replicas have one subscription with a legacy server, and each change reaches the
// clients of all. Once they have left, nothing is left.
func TestReplicasWatchTogether(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 3, watchTogether)
	p := all[0].peer
	var streams []*frames
	for _, r := range all {
		for _, id := range []string{"1", "2"} {
			f := r.listen(t, id, `{"resourceSubscriptions":["file:///d"]}`)
			f.next()
			streams = append(streams, f)
		}
	}
	if n := len(p.sent("resources/subscribe")); n != 1 && !topicsMoved(all) {
		t.Errorf("the server was sent %d subscriptions, want 1", n)
	}
	for range 20 {
		p.push(updated("file:///d"))
		for i, f := range streams {
			if got := f.next(); got == "" {
				t.Fatalf("stream %d has ended", i)
			}
		}
	}
	for _, f := range streams {
		f.res.Body.Close()
	}
	for _, r := range all {
		eventually(t, func() bool {
			s := r.g.hub.Snapshot()
			return s.Topics+s.Pairs+s.Peers == 0
		})
	}
	eventually(t, func() bool { return len(p.sent("resources/unsubscribe")) == 1 })
}

// A replica ends in order: its topics are taken over, and the clients of others stay.
func TestReplicaThatWatchesEnds(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 3, watchTogether)
	p := all[0].peer
	var streams []*frames
	for _, r := range all {
		f := r.listen(t, "1", `{"resourceSubscriptions":["file:///d"]}`)
		f.next()
		streams = append(streams, f)
	}
	moved := topicsMoved(all)
	all[0].g.EndStreams()
	for _, f := range streams[1:] {
		if moved {
			break // the one that ends does not watch
		}
		if got := f.next(); got == "" {
			t.Fatal("a stream has ended at a replica that goes on")
		}
	}
	eventually(t, func() bool { return len(p.sent("resources/subscribe")) >= 2 })
	p.push(updated("file:///d"))
	for _, f := range streams[1:] {
		if got := f.next(); got == "" {
			t.Fatal("a stream has ended at a replica that goes on")
		}
	}
}
