package hub

import (
	"maps"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// maxFew is the largest number of topics that are searched one by one: most sessions have
// no more, and a map of one topic takes 450 bytes.
const maxFew = 8

// A watchedTopic is one topic of a subscription, which the server is asked to report.
type watchedTopic struct {
	topic   fanout.Topic
	settled chan struct{} // closed once the server has answered, and those below are set
	left    bool          // who asked did not wait for the answer: who waits, too, asks anew
	err     error         // why it is not watched
	release func()        // stops watching the topic upstream; nil if the server refused
}

// watchedTopics are the watched topics of one subscription. The zero value is ready to use.
type watchedTopics struct {
	few  []*watchedTopic
	many map[fanout.Topic]*watchedTopic // has all topics once there were more than maxFew
}

// of returns the watched topic of t, or nil.
func (hs *watchedTopics) of(t fanout.Topic) *watchedTopic {
	for _, h := range hs.few {
		if h.topic == t {
			return h
		}
	}
	return hs.many[t]
}

func (hs *watchedTopics) add(h *watchedTopic) {
	if hs.many == nil && len(hs.few) < maxFew {
		hs.few = append(hs.few, h)
		return
	}
	if hs.many == nil {
		hs.many = make(map[fanout.Topic]*watchedTopic)
		for _, o := range hs.few {
			hs.many[o.topic] = o
		}
		hs.few = nil
	}
	hs.many[h.topic] = h
}

// remove removes a topic, if it is watched.
func (hs *watchedTopics) remove(t fanout.Topic) {
	hs.few = slices.DeleteFunc(hs.few, func(h *watchedTopic) bool { return h.topic == t })
	delete(hs.many, t)
}

func (hs *watchedTopics) all() []*watchedTopic {
	return slices.AppendSeq(slices.Clone(hs.few), maps.Values(hs.many))
}

// end stops watching the topic. If the server has not answered yet, settle stops it.
func (h *watchedTopic) end() {
	if h == nil {
		return
	}
	select {
	case <-h.settled:
		if h.release != nil {
			h.release()
		}
	default:
	}
}
