package back

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

type oneChange struct {
	watch.Stream
	meta string
}

func (s oneChange) Next() (fanout.Event, error) {
	ev := fanout.Event{Topic: fanout.Topic{Kind: fanout.ResourceUpdated, URI: "a:b"}}
	if s.meta != "" {
		ev.Meta = []byte(s.meta)
	}
	return ev, nil
}

// The number of a change comes from another replica alone, and does not go on to clients.
func TestNumbersComeFromReplicas(t *testing.T) {
	for _, tt := range []struct {
		name, meta string
		peer       *upstream.Peer
		number     uint64
		want       string
	}{
		{"a replica", `{"dev.mcpbridge/number":18446744073709551615}`, new(upstream.Peer), 1<<64 - 1, ""},
		{"beside the server's own", `{"v":1,"dev.mcpbridge/number":7,"w":2}`, new(upstream.Peer), 7, `{"v":1,"w":2}`},
		{"a replica of an earlier version", `{"v":1}`, new(upstream.Peer), 0, `{"v":1}`},
		{"no number", `{"dev.mcpbridge/number":"7"}`, new(upstream.Peer), 0, ""},
		{"nothing", "", new(upstream.Peer), 0, ""},
		{"a server", `{"dev.mcpbridge/number":7}`, nil, 0, `{"dev.mcpbridge/number":7}`},
	} {
		b := new(Back)
		b.opts.Peer = tt.peer
		ev, err := b.streamOf(oneChange{meta: tt.meta}, listenProfile).Next()
		if err != nil || ev.Number != tt.number || string(ev.Meta) != tt.want {
			t.Errorf("%s: Next() = number %d, meta %s, %v, want %d, %s", tt.name, ev.Number, ev.Meta, err, tt.number, tt.want)
		}
	}
}
