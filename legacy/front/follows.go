package front

import (
	"maps"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// noting returns r; for requests that begin or end a subscription, one that notes it when
// the server has accepted it. The server itself reports the changes of a relayed session, so
// that what is noted is only told of.
func (s *relayed) noting(m *wire.Message, r *relayedRequest) mcp.RelayedCall {
	if m.Method != spec.MethodSubscribe && m.Method != spec.MethodUnsubscribe {
		return r
	}
	uri, ok := wire.GetString(m.Params, "uri")
	if !ok || uri == "" {
		return r
	}
	return &subscribing{r, uri, m.Method == spec.MethodSubscribe}
}

// A subscribing is a forwarded request to begin or end a subscription.
type subscribing struct {
	*relayedRequest
	uri string
	on  bool
}

// Answer implements [mcp.RelayedCall].
func (r *subscribing) Answer(text []byte, failed error) {
	if failed == nil {
		r.session.subscriptions.note(r.uri, r.on)
	}
	r.relayedRequest.Answer(text, failed)
}

// offer notes which lists the server reports changes of to a relayed session.
func (s *subscriptions) offer(answer []byte) {
	offered := mcp.ReadServerCapabilities(wire.Get(wire.Get(answer, "result"), "capabilities")).Lists
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = mcp.Filter{Tools: offered.Tools, Prompts: offered.Prompts, Resources: offered.Resources}
}

// note notes a subscription of a relayed session. Those beyond limits.listen_topics, and
// beyond the memory that there is, count for the server alone.
func (s *subscriptions) note(uri string, on bool) {
	s.mu.Lock()
	at, held := slices.BinarySearch(s.uris, uri)
	if held && !on {
		s.uris = slices.Delete(s.uris, at, at+1)
	}
	full := len(s.uris) >= s.session.front.opts.Limits.Int(limits.ListenTopics)
	s.mu.Unlock()
	switch {
	case held && !on:
		s.session.streams.Give(sizeOf(uri))
	case held || !on || full || s.session.streams.Take(sizeOf(uri)) != nil:
	case !s.add(uri):
		s.session.streams.Give(sizeOf(uri))
	}
}

// filter returns the topics.
func (s *subscriptions) filter() mcp.Filter {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.lists
	f.URIs = slices.Clone(s.uris)
	return f
}

// AppendFollowings appends the clients whose sessions are relayed, with what they follow.
func (f *Front) AppendFollowings(to []status.Following) []status.Following {
	for _, s := range f.relayedSessions() {
		var topics []status.TopicKey
		for _, t := range s.subscriptions.filter().Topics("") {
			topics = append(topics, status.TopicKey{Server: f.opts.Name, Kind: t.Kind.String(), URI: t.URI})
		}
		if len(topics) > 0 {
			to = append(to, status.Following{Topics: topics, By: s.follower})
		}
	}
	return to
}

// relayedSessions returns the sessions that are relayed.
func (f *Front) relayedSessions() []*session {
	f.sessions.mu.Lock()
	all := slices.Collect(maps.Values(f.sessions.byID))
	f.sessions.mu.Unlock()
	f.mu.Lock()
	conns := slices.Collect(maps.Keys(f.conns))
	f.mu.Unlock()
	for _, c := range conns {
		if s, _ := c.current(); s != nil {
			all = append(all, s)
		}
	}
	return slices.DeleteFunc(all, func(s *session) bool { return !s.hasOwnUpstream() })
}

// follower returns what is told of the client.
func (s *session) follower() status.FollowerKey {
	return status.FollowerKey{Era: spec.Legacy.String(), Name: mcp.ClientName(s.info), Principal: string(s.opener.Principal), Session: s.name}
}
