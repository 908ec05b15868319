package gateway

import (
	"maps"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// maxFew is the number of holds up to which they are found by looking at each: most
// sessions have no more, and a map of one topic takes 450 bytes.
const maxFew = 8

// A hold is the interest of a subscription in one topic.
type hold struct {
	topic   fanout.Topic
	settled chan struct{} // closed once the server has answered and release is set
	release func()        // nil if the server refused
}

// holds are those of one subscription, by topic. The zero value is ready to use.
type holds struct {
	few  []*hold
	many map[fanout.Topic]*hold // has all once there were more than maxFew
}

// of returns the hold of a topic, or nil.
func (hs *holds) of(t fanout.Topic) *hold {
	for _, h := range hs.few {
		if h.topic == t {
			return h
		}
	}
	return hs.many[t]
}

func (hs *holds) add(h *hold) {
	if hs.many == nil && len(hs.few) < maxFew {
		hs.few = append(hs.few, h)
		return
	}
	if hs.many == nil {
		hs.many = make(map[fanout.Topic]*hold)
		for _, o := range hs.few {
			hs.many[o.topic] = o
		}
		hs.few = nil
	}
	hs.many[h.topic] = h
}

// remove removes the hold of a topic, if there is one.
func (hs *holds) remove(t fanout.Topic) {
	hs.few = slices.DeleteFunc(hs.few, func(h *hold) bool { return h.topic == t })
	delete(hs.many, t)
}

func (hs *holds) all() []*hold {
	return slices.AppendSeq(slices.Clone(hs.few), maps.Values(hs.many))
}

// end ends the interest in a topic. What the server has not answered yet is ended by
// settle.
func (h *hold) end() {
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
