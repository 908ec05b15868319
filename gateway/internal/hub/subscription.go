package hub

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// maxForgotten is how many removed topics a subscription remembers, so that changes which
// were in flight at their removal are not delivered. Changes of topics that were removed
// earlier have arrived.
const maxForgotten = 64

// ErrUnsubscribed is the error of an Add after the Close.
var ErrUnsubscribed = errors.New("the session has ended")

// A Subscription keeps one subscriber's topics in the index, and asks the server to report
// them. It is an [mcp.Subscription].
type Subscription struct {
	hub     *Hub
	server  Server
	profile mcp.Profile
	mail    *fanout.Mailbox
	index   *Index // for its topics
	stream  bool   // see mcp.SubscribeOptions, as the next one
	peer    bool
	forget  func() // its credential
	by      Follower
	told    func(t fanout.Topic, reason error) // of topics that are lost; nil for nobody

	// mu guards the fields below and the index's pairs of mail. It is held for work in
	// memory only.
	mu        sync.Mutex
	closed    bool
	release   func()         // stops watching all topics of a listen stream
	topics    watchedTopics  // of a subscription that is not a listen stream
	lost      watchedTopics  // ended by the server, and not released yet
	forgotten []fanout.Topic // removed topics, oldest first
}

// Subscribe implements [mcp.Subscriber] for one server. A stream ends with the credential
// that it was opened with; the session of a legacy client may get another.
func (h *Hub) Subscribe(s Server, req *mcp.Request, mail *fanout.Mailbox, o mcp.SubscribeOptions) (*Subscription, error) {
	sub := &Subscription{hub: h, index: h.index, server: s, profile: req.Profile, mail: mail, stream: o.Stream, peer: o.Peer, forget: func() {}, by: NewFollower(req, h.last.Add(1))}
	if o.Peer {
		sub.index = h.peers.index
	}
	if err := h.add(sub); err != nil {
		return nil, err
	}
	if o.Stream {
		sub.forget = h.until(req.Identity, mail.End)
	}
	return sub, nil
}

// Profile returns the subscriber's profile.
func (s *Subscription) Profile() mcp.Profile { return s.profile }

// Ended returns why the subscriber's mailbox was ended, if it was.
func (s *Subscription) Ended() (reason error, ended bool) { return s.mail.Ended() }

// Add implements [mcp.Subscription].
func (s *Subscription) Add(ctx context.Context, want mcp.Filter) (mcp.Filter, error) {
	topics := want.Topics(s.profile.Scope)
	add := s.addEach
	if s.stream {
		add = s.addAll
	}
	honored, err := add(ctx, topics)
	return want.Narrow(honored), err
}

// addAll watches all topics of a stream with one call of Watch. It adds them to the index
// first, so that no change after the server's answer is lost.
func (s *Subscription) addAll(ctx context.Context, topics []fanout.Topic) ([]fanout.Topic, error) {
	for _, t := range topics {
		s.index.Subscribe(t, s.mail)
	}
	honored, release, err := mcp.WatchNow(ctx, s.server, s.profile, topics)
	if err != nil {
		s.index.Prune(s.mail)
		return nil, err
	}
	s.keepRelease(release)
	if len(honored) < len(topics) {
		s.narrow(topics, honored)
	}
	return honored, nil
}

// keepRelease stores release for Close. If the stream is closed already, it calls release.
func (s *Subscription) keepRelease(release func()) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.release = release
	}
	s.mu.Unlock()
	if closed {
		release()
	}
}

// narrow removes the topics that are not in honored, and their pending changes. honored is a
// subset of topics in the same order.
func (s *Subscription) narrow(topics, honored []fanout.Topic) {
	var refused []fanout.Topic
	for _, t := range topics {
		if len(honored) > 0 && honored[0] == t {
			honored = honored[1:]
			continue
		}
		s.index.Unsubscribe(t, s.mail)
		refused = append(refused, t)
	}
	s.mail.Refuse(refused...)
}

// addEach watches each topic with its own call of Watch, since each may be removed alone. It
// makes the calls concurrently, so that the back can combine them into one request.
func (s *Subscription) addEach(ctx context.Context, topics []fanout.Topic) ([]fanout.Topic, error) {
	held, errs := make([]bool, len(topics)), make([]error, len(topics))
	var wg sync.WaitGroup
	for i, t := range topics {
		wg.Go(func() { held[i], errs[i] = s.addOne(ctx, s.profile, t) })
	}
	wg.Wait()
	honored := topics[:0]
	for i, t := range topics {
		if held[i] {
			honored = append(honored, t)
		}
	}
	return honored, errors.Join(errs...)
}

// addOne watches a topic for the subscriber's profile, with its share or another one, unless it is
// watched already or another call is about to, and reports whether the server accepted it.
func (s *Subscription) addOne(ctx context.Context, p mcp.Profile, t fanout.Topic) (bool, error) {
	for {
		h, lost, own := s.register(t)
		lost.end()
		switch {
		case h == nil:
			return false, ErrUnsubscribed
		case own:
			return s.ask(ctx, p, h)
		}
		select {
		case <-h.settled:
			if !h.left {
				return h.release != nil, h.err
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// ask has the server watch a registered topic, and reports whether it accepted that.
func (s *Subscription) ask(ctx context.Context, p mcp.Profile, h *watchedTopic) (bool, error) {
	t := h.topic
	honored, release, err := s.server.Watch(ctx, p, []fanout.Topic{t})
	if err != nil {
		level := slog.LevelInfo
		if s.told != nil || errors.As(err, new(*mcp.LoginError)) || errors.Is(err, mcp.ErrNotNow) { // it is tried again
			level = slog.LevelDebug
		}
		s.hub.logger.Log(ctx, level, "subscription refused", "upstream", s.server.Name(), "topic", t, "err", err)
	}
	h.left, h.err = err != nil && ctx.Err() != nil, s.server.ForClient(err)
	held := s.settle(t, h, len(honored) > 0, release)
	return held, h.err // which settle may have set
}

// register adds a topic to the index, before it is watched. own reports that the caller has
// to watch it; lost is an earlier watch of the topic that the caller has to end first.
func (s *Subscription) register(t fanout.Topic) (h, lost *watchedTopic, own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, false
	}
	if h = s.topics.of(t); h != nil {
		return h, nil, false
	}
	lost = s.lost.of(t)
	s.lost.remove(t)
	h = &watchedTopic{topic: t, settled: make(chan struct{})}
	s.topics.add(h)
	s.mail.Accept(t)
	s.index.Subscribe(t, s.mail)
	return h, lost, true
}

// settle records the server's answer, and reports whether the topic is watched. It is not if it was
// removed in the meantime; if the server has given it up, it can be asked again, as the error says.
func (s *Subscription) settle(t fanout.Topic, h *watchedTopic, honored bool, release func()) bool {
	s.mu.Lock()
	current, lost := s.topics.of(t) == h, s.lost.of(t) == h
	switch {
	case current && honored, lost:
		h.release, release = release, nil
	case current:
		s.forgetLocked(h)
	}
	if lost && honored {
		h.err = mcp.ErrNotNow
	}
	close(h.settled)
	s.mu.Unlock()
	if release != nil {
		release()
	}
	return current && honored
}

// Remove implements [mcp.Subscription].
func (s *Subscription) Remove(uris ...string) {
	for _, t := range (mcp.Filter{URIs: uris}).Topics(s.profile.Scope) {
		s.removeOne(t)
	}
}

func (s *Subscription) removeOne(t fanout.Topic) {
	s.mu.Lock()
	h := s.topics.of(t)
	if h != nil {
		s.forgetLocked(h)
	}
	s.mu.Unlock()
	h.end()
}

// forgetLocked removes a topic and its pending changes.
func (s *Subscription) forgetLocked(h *watchedTopic) {
	t := h.topic
	s.topics.remove(t)
	s.index.Unsubscribe(t, s.mail)
	s.mail.Refuse(t)
	if s.forgotten = append(s.forgotten, t); len(s.forgotten) > maxForgotten {
		s.mail.Accept(s.forgotten[0])
		s.forgotten = s.forgotten[1:]
	}
}

// lose handles that no more changes of a topic will come. A listen stream ends. Other
// subscribers lose the topic and receive a last change, so that they read the resource again
// and get the error. lose is called by the back and must not call it: the watch is ended
// later.
func (s *Subscription) lose(t fanout.Topic, reason error) {
	if s.stream {
		s.mail.End(reason)
		return
	}
	s.mu.Lock()
	h := s.topics.of(t)
	if h != nil {
		s.topics.remove(t)
		s.lost.add(h)
		s.index.Unsubscribe(t, s.mail)
	}
	s.mu.Unlock()
	if h == nil {
		return
	}
	if t.Kind != fanout.StateLost { // which says that there is another session
		s.mail.Put(fanout.Event{Topic: t})
	}
	if s.told != nil {
		s.told(t, reason)
	} else {
		s.hub.logger.Warn("subscription ended", "upstream", s.server.Name(), "topic", t, "reason", reason)
	}
}

// Close implements [mcp.Subscription].
func (s *Subscription) Close() {
	s.mu.Lock()
	first, held, lost, release := !s.closed, s.topics, s.lost, s.release
	s.closed, s.topics, s.lost = true, watchedTopics{}, watchedTopics{}
	s.index.Prune(s.mail)
	s.mu.Unlock()
	if !first {
		return
	}
	s.forget()
	s.hub.remove(s)
	if release != nil {
		release()
	}
	for _, h := range slices.Concat(held.all(), lost.all()) {
		h.end()
	}
}

// refuseEnding returns the error for subscribers that come after the gateway, or the server,
// has begun to end.
func refuseEnding(why error, stream bool) error {
	if stream {
		return mcp.RefuseForNow("%v; listen again in a moment", why)
	}
	return mcp.Refuse(spec.CodeInternal, "%v; try again in a moment", why)
}
