package gateway

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/index"
	"github.com/mcpbridge/mcpbridge/internal/cache"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A hub carries changes from backs to streams: bus, index, mailboxes. It is the
// mcp.Changes of every back. Safe for concurrent use.
type hub struct {
	index   *index.Index[fanout.Topic, *fanout.Mailbox]
	bus     fanout.Bus
	cache   *cache.Cache // nil if nothing is kept
	logger  *slog.Logger
	metrics mcp.Metrics
	max     int // open streams
	leave   func()

	// mu guards the fields below. It is held for map work only.
	mu      sync.Mutex
	open    map[*fanout.Mailbox]struct{}    // listen streams
	members map[*fanout.Mailbox]*membership // legacy sessions
	closed  bool

	scratch sync.Pool // *[]*fanout.Mailbox, for deliver
}

func newHub(opts Options, c *cache.Cache) *hub {
	h := &hub{
		index:   index.New[fanout.Topic, *fanout.Mailbox](index.Options{}),
		bus:     fanout.NewBus(fanout.BusOptions{Logger: opts.Logger}),
		cache:   c,
		logger:  opts.Logger,
		metrics: opts.Metrics,
		max:     opts.MaxStreams,
		open:    make(map[*fanout.Mailbox]struct{}),
		members: make(map[*fanout.Mailbox]*membership),
		scratch: sync.Pool{New: func() any { return new([]*fanout.Mailbox) }},
	}
	h.leave = h.bus.Subscribe(h.deliver)
	return h
}

// listen registers mail before it asks the upstream, so that no change falls
// between the upstream's answer and the registration, and takes back what the
// upstream did not grant.
func (h *hub) listen(ctx context.Context, s *server, p mcp.Profile, want mcp.Filter, mail *fanout.Mailbox) (mcp.Filter, func(), error) {
	if err := h.enter(s.name, mail); err != nil {
		return mcp.Filter{}, nil, err
	}
	topics := want.Topics(p.Scope)
	for _, t := range topics {
		h.index.Subscribe(t, mail)
	}
	honored, release, err := s.back.Watch(ctx, p, topics)
	if err != nil {
		h.exit(mail)
		return mcp.Filter{}, nil, err
	}
	if len(honored) < len(topics) {
		h.narrow(mail, topics, honored)
	}
	return want.Narrow(honored), func() { h.exit(mail); release() }, nil
}

// narrow takes the topics that were not granted off mail, pending ones too.
// honored is a part of topics in the same order.
func (h *hub) narrow(mail *fanout.Mailbox, topics, honored []fanout.Topic) {
	var refused []fanout.Topic
	for _, t := range topics {
		if len(honored) > 0 && honored[0] == t {
			honored = honored[1:]
			continue
		}
		h.index.Unsubscribe(t, mail)
		refused = append(refused, t)
	}
	mail.Refuse(refused...)
}

// enter counts a stream in, or refuses it.
func (h *hub) enter(server string, mail *fanout.Mailbox) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return mcp.RefuseForNow("%v; listen again in a moment", mcp.ErrShutdown)
	case len(h.open) >= h.max:
		h.metrics.Limit(server, limits.Streams.Key)
		h.logger.Warn("listen stream refused: too many are open", "upstream", server, "limit", h.max)
		return mcp.RefuseForNow("%d listen streams are open, the limit; close some, or %s", h.max, limits.Streams.Raise())
	}
	h.open[mail] = struct{}{}
	h.metrics.Streams(1)
	return nil
}

// exit prunes a stream: nothing of it is left.
func (h *hub) exit(mail *fanout.Mailbox) {
	h.index.Prune(mail)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, mail)
	h.metrics.Streams(-1)
}

// endServer ends all streams and sessions of one server that have a topic.
func (h *hub) endServer(name string, reason error) {
	h.cache.Forget(name) // before anybody hears of it and asks again
	for topic, mails := range h.index.Snapshot() {
		if serverOf(topic.Scope) == name {
			for _, mail := range mails {
				mail.End(reason)
			}
		}
	}
}

// close ends all streams and refuses new ones.
func (h *hub) close() {
	h.mu.Lock()
	first := !h.closed
	h.closed = true
	open := slices.AppendSeq(slices.Collect(maps.Keys(h.open)), maps.Keys(h.members))
	h.mu.Unlock()
	for _, mail := range open {
		mail.End(mcp.ErrShutdown)
	}
	if first {
		h.leave()
		h.cache.Close()
	}
}

// Publish puts an event on the bus.
func (h *hub) Publish(ev fanout.Event) {
	if err := h.bus.Publish(context.Background(), ev); err != nil {
		h.logger.Warn("change not published", "topic", ev.Topic, "err", err)
	}
}

// Wanted reports whether any stream holds the topic.
func (h *hub) Wanted(t fanout.Topic) bool { return h.index.Has(t) }

// End ends the listen streams that hold the topic; sessions only lose it.
func (h *hub) End(t fanout.Topic, reason error) {
	h.each(t, func(mail *fanout.Mailbox) {
		if m := h.member(mail); m != nil {
			m.lose(t, reason)
		} else {
			mail.End(reason)
		}
	})
}

// deliver marks an event in the mailbox of each stream that holds its topic.
// Results that the change made stale leave the cache before: whoever hears of
// the change and asks again must get the new ones. On a bus of several replicas
// this happens on each of them.
func (h *hub) deliver(ev fanout.Event) {
	h.cache.Evict(ev)
	n := h.each(ev.Topic, func(mail *fanout.Mailbox) { mail.Put(ev) })
	if n > 0 {
		h.metrics.Offered(serverOf(ev.Topic.Scope), n)
	}
}

// each calls do for the streams that hold the topic, and returns their number.
func (h *hub) each(t fanout.Topic, do func(*fanout.Mailbox)) int {
	buf := h.scratch.Get().(*[]*fanout.Mailbox)
	*buf = h.index.AppendSubscribers((*buf)[:0], t)
	n := len(*buf)
	for _, mail := range *buf {
		do(mail)
	}
	clear(*buf) // the pool must not keep streams alive
	h.scratch.Put(buf)
	return n
}

func (h *hub) snapshot() Snapshot {
	topics, pairs := h.index.Len()
	h.mu.Lock()
	defer h.mu.Unlock()
	return Snapshot{Draining: h.closed, Streams: len(h.open), Members: len(h.members), Topics: topics, Pairs: pairs, Cache: h.cache.Snapshot()}
}
