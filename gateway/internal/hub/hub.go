package hub

import (
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/gateway/internal/cache"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A Hub delivers changes from backs to subscribers: through an index and mailboxes.
// It is the [mcp.Changes] of every back. Safe for concurrent use.
type Hub struct {
	index   *Index
	cache   *cache.Cache // nil if nothing is kept
	logger  *slog.Logger
	metrics mcp.Metrics
	until   func(id *mcp.Identity, end func(reason error)) (forget func())

	// mu guards the fields below. It is held for map work only.
	mu            sync.Mutex
	subscriptions map[*fanout.Mailbox]*Subscription
	streams       mcp.Places // of the listen streams in subscriptions
	peers         peers      // in subscriptions, too
	closed        bool

	scratch sync.Pool     // *[]*fanout.Mailbox; buffers of the method each
	last    atomic.Uint64 // the number of the last subscriber
	watch   atomic.Pointer[func(ev fanout.Event, followers int)]

	yielded, refused transport.WarnLimiter // of streams, when too many are open
}

// Options configures a Hub.
type Options struct {
	Cache   *cache.Cache // nil if nothing is kept
	Logger  *slog.Logger
	Metrics mcp.Metrics
	// Until ends a stream once its credential has; forget ends the watch.
	Until func(id *mcp.Identity, end func(reason error)) (forget func())
}

// A Server is what a Hub knows of a server of the gateway.
type Server interface {
	mcp.Source
	Name() string
	Scope() string             // what the scopes of its profiles begin with
	Reason() error             // why it is used no more; nil if it is
	ForClient(err error) error // what clients are told
}

// New returns a Hub, which has no place for streams before Bound. The caller calls Close.
func New(opts Options) *Hub {
	return &Hub{
		index:         newIndex(),
		cache:         opts.Cache,
		logger:        opts.Logger,
		metrics:       opts.Metrics,
		until:         opts.Until,
		streams:       mcp.Places{All: limits.Streams, Each: limits.StreamsEach},
		subscriptions: make(map[*fanout.Mailbox]*Subscription),
		peers:         peers{index: newIndex()},
		scratch:       sync.Pool{New: func() any { return new([]*fanout.Mailbox) }},
	}
}

// errYielded is why a stream ends whose place another client needs.
var errYielded = errors.New("another client needs its place")

// add registers a subscription. It returns an error for the client if it can't. A stream of a
// client that has none takes the place of another one, where there is no more.
func (h *Hub) add(s *Subscription) error {
	h.mu.Lock()
	yields, err := h.addLocked(s)
	h.mu.Unlock()
	if yields != nil {
		h.metrics.Limit(s.server.Name(), limits.Streams.Key)
		h.yielded.Warn(h.logger, "listen stream ended: its client has the most, and one without any came", "upstream", yields.server.Name(), "key", limits.Streams.Key, yields.profile.Share.Principal.Attr())
		yields.mail.End(errYielded)
	}
	return err
}

func (h *Hub) addLocked(s *Subscription) (yields *Subscription, err error) {
	if h.closed {
		return nil, refuseEnding(mcp.ErrShutdown, s.stream)
	}
	if why := s.server.Reason(); why != nil {
		return nil, refuseEnding(why, s.stream)
	}
	switch {
	case s.peer:
		if h.peers.open >= maxPeers {
			return nil, h.fullOfPeers(s.server.Name())
		}
		h.peers.open++
	case s.stream:
		if limit, most := h.streams.Full(s.profile.Share); limit != nil {
			if yields = h.yieldLocked(s.profile.Share); yields == nil {
				return nil, h.full(s.server.Name(), limit, most)
			}
		}
		h.streams.Take(s.profile.Share)
		h.metrics.Streams(1)
	}
	h.subscriptions[s.mail] = s
	return yields, nil
}

// yieldLocked frees the place of the stream that yields to one of a share: of those of the
// biggest share the oldest, as streams hear nothing of their clients. It returns nil if there is
// none. The caller ends it.
func (h *Hub) yieldLocked(to mcp.Share) (oldest *Subscription) {
	biggest, ok := h.streams.Biggest(to)
	if !ok {
		return nil
	}
	for _, s := range h.subscriptions {
		if s.stream && !s.peer && s.profile.Share == biggest && (oldest == nil || s.by.Number < oldest.by.Number) {
			oldest = s
		}
	}
	if oldest != nil {
		h.dropLocked(oldest)
	}
	return oldest
}

// dropLocked takes a subscription out, and its place, unless it has yielded that.
func (h *Hub) dropLocked(s *Subscription) {
	if h.subscriptions[s.mail] == nil {
		return
	}
	delete(h.subscriptions, s.mail)
	switch {
	case s.peer:
		h.peers.open--
	case s.stream:
		h.streams.Give(s.profile.Share)
		h.metrics.Streams(-1)
	}
}

// full counts and logs a reached limit, and returns the error for the client.
func (h *Hub) full(server string, limit *limits.Limit, most int) error {
	h.metrics.Limit(server, limit.Key)
	h.refused.Warn(h.logger, "listen stream refused: too many are open", "upstream", server, "limit", most, "key", limit.Key)
	return mcp.RefuseForNow("%d listen streams are open, the limit; close some, or %s", most, limit.Raise())
}

// remove removes a subscription.
func (h *Hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropLocked(s)
}

// EndServer ends all subscriptions that have a topic of a server.
func (h *Hub) EndServer(s Server, reason error) {
	h.cache.Forget(s.Name()) // before subscribers receive the end and read again
	h.endScopes(h.index, s.Scope(), reason)
	h.endScopes(h.peers.index, s.Scope(), reason)
}

func (h *Hub) endScopes(x *Index, prefix string, reason error) {
	for topic, mails := range x.Snapshot() {
		if mcp.ScopePrefix(topic.Scope) == prefix {
			for _, mail := range mails {
				mail.End(reason)
			}
		}
	}
}

// EndSubscriptions ends all subscriptions of a server whose lifetime has ended. No further
// ones are added.
func (h *Hub) EndSubscriptions(s Server, reason error) {
	h.cache.Forget(s.Name())
	var open []*fanout.Mailbox
	h.mu.Lock()
	for mail, sub := range h.subscriptions {
		if sub.server.Scope() == s.Scope() {
			open = append(open, mail)
		}
	}
	h.mu.Unlock()
	for _, mail := range open {
		mail.End(reason)
	}
}

// Bound sets the limits on open listen streams: on all, and on those of each share.
func (h *Hub) Bound(all, each int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams.Max, h.streams.MaxEach = all, each
}

// Close ends all subscriptions and refuses new ones.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	open := slices.Collect(maps.Keys(h.subscriptions))
	h.mu.Unlock()
	for _, mail := range open {
		mail.End(mcp.ErrShutdown)
	}
	h.cache.Close()
}

// Cache returns what is kept of results; nil if nothing is.
func (h *Hub) Cache() *cache.Cache { return h.cache }

// Publish implements [mcp.Changes]. A panic does not reach the back, which serves others.
func (h *Hub) Publish(ev fanout.Event) {
	if !ev.Topic.Kind.Valid() {
		h.logger.Warn("change not published: its kind is invalid", "topic", ev.Topic)
		return
	}
	defer func() {
		if v := recover(); v != nil {
			h.logger.Error("delivering a change panicked", "kind", ev.Topic.Kind, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	h.deliver(ev)
}

// Wanted implements [mcp.Changes].
func (h *Hub) Wanted(t fanout.Topic) bool { return h.index.Has(t) || h.WantedByPeers(t) }

// End implements [mcp.Changes].
func (h *Hub) End(t fanout.Topic, reason error) {
	h.end(h.index, t, reason)
	h.end(h.peers.index, t, reason)
}

func (h *Hub) end(x *Index, t fanout.Topic, reason error) {
	h.each(x, t, func(mail *fanout.Mailbox) {
		if s := h.subscription(mail); s != nil {
			s.lose(t, reason)
		}
	})
}

// subscription returns the subscription of a mailbox, nil once it is closed.
func (h *Hub) subscription(mail *fanout.Mailbox) *Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.subscriptions[mail]
}

// deliver puts an event into the mailbox of each subscriber of its topic. It first evicts
// the cached results that the change made stale: a client that reads again after the change
// must get the new result.
func (h *Hub) deliver(ev fanout.Event) {
	h.deliverLocally(ev)
	if h.peers.index.Has(ev.Topic) {
		ev.Number = h.peers.last.Add(1)
		h.each(h.peers.index, ev.Topic, func(mail *fanout.Mailbox) { mail.Put(ev) })
	}
}

// deliverLocally is deliver for the clients of this replica.
func (h *Hub) deliverLocally(ev fanout.Event) {
	h.cache.Evict(ev)
	n := h.each(h.index, ev.Topic, func(mail *fanout.Mailbox) { mail.Put(ev) })
	if n > 0 {
		h.metrics.Offered(mcp.ServerOf(ev.Topic.Scope), n)
	}
	if watch := h.watch.Load(); watch != nil && !ev.IsMessage() { // which is no change
		(*watch)(ev, n)
	}
}

// each calls do for the subscribers of a topic in an index, and returns their number.
func (h *Hub) each(x *Index, t fanout.Topic, do func(*fanout.Mailbox)) int {
	buf := h.scratch.Get().(*[]*fanout.Mailbox)
	*buf = x.AppendSubscribers((*buf)[:0], t)
	n := len(*buf)
	for _, mail := range *buf {
		do(mail)
	}
	clear(*buf) // the pool must not keep mailboxes alive
	h.scratch.Put(buf)
	return n
}

// A Snapshot is what a Hub holds.
type Snapshot struct {
	Closed  bool
	Streams int // open listen streams
	Members int // legacy sessions that can subscribe
	Peers   int // open listen streams of other replicas
	Topics  int // distinct topics with subscribers
	Pairs   int // (topic, subscriber) pairs
	Cache   cache.Snapshot
}

// Snapshot returns what the hub holds.
func (h *Hub) Snapshot() Snapshot {
	topics, pairs := h.index.Len()
	h.mu.Lock()
	defer h.mu.Unlock()
	return Snapshot{
		Closed: h.closed, Streams: h.streams.Len(), Members: len(h.subscriptions) - h.streams.Len() - h.peers.open,
		Peers:  h.peers.open,
		Topics: topics, Pairs: pairs, Cache: h.cache.Snapshot(),
	}
}
