package hub

import (
	"strconv"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

func TestHolds(t *testing.T) {
	topic := func(i int) fanout.Topic { return fanout.Topic{Kind: fanout.ResourceUpdated, URI: strconv.Itoa(i)} }
	for _, n := range []int{0, 1, maxFew, maxFew + 1, 100} {
		var hs watchedTopics
		for i := range n {
			hs.add(&watchedTopic{topic: topic(i)})
		}
		if len(hs.all()) != n || hs.of(topic(n)) != nil {
			t.Errorf("%d holds: all() has %d", n, len(hs.all()))
		}
		for i := range n {
			if h := hs.of(topic(i)); h == nil || h.topic != topic(i) {
				t.Errorf("%d holds: of(%d) = %v", n, i, h)
			}
			hs.remove(topic(i))
			if hs.of(topic(i)) != nil {
				t.Errorf("%d holds: %d was removed", n, i)
			}
		}
	}
}
