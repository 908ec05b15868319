package group

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// maxShort bounds the lists that lack a member and are completed by a change.
const maxShort = 4096

// askAgain are the pauses between two attempts to list a member that a list lacks.
var askAgain = wake.Backoff{Min: time.Second, Max: 30 * time.Second}

// listChanges are the changes that tell that a list has changed.
var listChanges = map[string]fanout.Kind{
	spec.MethodToolsList: fanout.ToolsListChanged, spec.MethodPromptsList: fanout.PromptsListChanged,
	spec.MethodResourcesList: fanout.ResourcesListChanged, spec.MethodResourcesTemplates: fanout.ResourcesListChanged,
}

// shortLists are lists that clients got without the items of some members. As soon as one of these
// can be listed, whoever follows the list is told that it has changed. Safe for concurrent use.
type shortLists struct {
	opts       *Options
	listings   *listings
	background *wake.Background
	changes    mcp.Changes
	heed       func(scope string, k fanout.Kind) // is told of a change before clients are

	// mu guards lists and what they have. It is held for map work only.
	mu    sync.Mutex
	lists map[shortKey]*shortList
}

type shortKey struct{ scope, method string }

// A shortList is a list that lacks members, or has lacked them for some clients.
type shortList struct {
	reader reader
	lacks  []place // where it lacks them; the slice is replaced, never changed
	asking bool    // a goroutine asks them
	joined bool    // another client has got one that it lacked; fixed
}

func newShortLists(b *Back) *shortLists {
	return &shortLists{
		opts: &b.opts, listings: b.listings, background: b.background, changes: b.changes, heed: b.listChanged,
		lists: make(map[shortKey]*shortList),
	}
}

// listed notes which members a page of the list of a request lacks, and which of them were listed from
// memory. If a member is there that the list has lacked, others who share the profile are told soon, but not
// ever again at once: a member may answer one client, and not another.
func (s *shortLists) listed(req *mcp.Request, l list, readings []*reading) {
	var lacks []place
	for _, r := range readings {
		if r.recalled || mayCome(r.err) {
			lacks = append(lacks, r.place)
		}
	}
	k := shortKey{req.Profile.Scope, l.method}
	s.mu.Lock()
	defer s.mu.Unlock()
	had, joined := s.lists[k], false
	if had != nil {
		lacks, joined = had.withLocked(lacks, readings)
		had.lacks = lacks
		joined = joined && req.Profile.Revision == "" // else it is of one session, whose client has it by now
	}
	switch {
	case joined && !had.joined && s.changes.Wanted(topicOf(k)):
		s.lists[k] = &shortList{reader: had.reader, lacks: lacks, joined: true}
		s.askLocked(k)
	case had != nil && len(lacks) == 0 && !(had.joined && had.asking):
		delete(s.lists, k)
	case had != nil || len(lacks) == 0:
	case len(s.lists) >= maxShort:
		s.opts.Metrics.Limit(s.opts.Name, "missing_lists")
		s.opts.Logger.Debug("nobody is told when a list is complete, since too many lists lack something", "upstream", s.opts.Name, "lists", maxShort)
	default:
		s.lists[k] = &shortList{reader: reader{of: s.listings, req: detached(req), list: l, caller: mcp.Nobody{}, fresh: true}, lacks: lacks}
		s.askLocked(k)
	}
}

// withLocked returns what a list lacks once a page of it has been read that lacks some members, and whether
// one has joined. What it lacked elsewhere it still does. So it does of a later page that is asked for, which
// another client may have read now than the one that lacks it. Of each member one place is enough.
func (l *shortList) withLocked(lacks []place, readings []*reading) (now []place, joined bool) {
	for _, had := range l.lacks {
		isRead := func(r *reading) bool { return r.place == had && (had.cursor == "" || !l.asking) }
		again := func(p place) bool { return p.member == had.member }
		switch i := slices.IndexFunc(readings, isRead); {
		case slices.ContainsFunc(lacks, again):
		case i < 0:
			lacks = append(lacks, had)
		default:
			joined = joined || readings[i].answered()
		}
	}
	return lacks, joined
}

// mayCome reports whether a member that answered with err may be listed later: not if the client
// may not list it.
func mayCome(err error) bool {
	return err != nil && (mcp.MayTryLater(err) || !errors.As(err, new(*mcp.Refusal)))
}

// detached returns a request for later, that is no part of the one of the client.
func detached(req *mcp.Request) *mcp.Request {
	out := *withoutProgress(req)
	out.Params, out.Extra, out.Memory, out.LogLevel = bytes.Clone(out.Params), nil, nil, ""
	out.Observed = mcp.Observed{}
	return &out
}

// followed says that a profile follows a list: who can't be asked for it is asked again.
func (s *shortLists) followed(scope string, k fanout.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, method := range lists {
		if listChanges[method] == k {
			s.askLocked(shortKey{scope, method})
		}
	}
}

// askLocked asks the members that a list lacks, if somebody follows it.
func (s *shortLists) askLocked(k shortKey) {
	l := s.lists[k]
	if l == nil || l.asking || !s.changes.Wanted(topicOf(k)) {
		return
	}
	l.asking = true
	s.background.Start(func(ctx context.Context) { s.ask(ctx, k, l) })
}

func topicOf(k shortKey) fanout.Topic {
	return fanout.Topic{Scope: k.scope, Kind: listChanges[k.method]}
}

// ask asks the members that a list lacks until one can be listed, or nobody follows the list. If one has
// joined, it tells that after the first pause.
func (s *shortLists) ask(ctx context.Context, k shortKey, l *shortList) {
	for failures := 0; ; failures++ {
		if wake.Wait(ctx, wake.Jitter(askAgain.After(failures))) != nil {
			return
		}
		lacks, open := s.stillLacks(k, l)
		switch {
		case !open:
			return
		case l.joined:
			s.complete(k, l)
			return
		}
		for _, r := range l.reader.each(ctx, lacks) {
			if r.answered() && ctx.Err() == nil {
				s.complete(k, l)
				return
			}
		}
	}
}

// answered reports whether a member can be listed that could not be. One that does not know the place any
// more has another list since.
func (r *reading) answered() bool {
	return r.err == nil && !r.none || r.cursor != "" && mcp.HasCode(r.err, spec.CodeInvalidParams)
}

// stillLacks returns the members that are to be asked; open is false if that is over.
func (s *shortLists) stillLacks(k shortKey, l *shortList) (lacks []place, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isLast := s.lists[k] == l
	if isLast && s.changes.Wanted(topicOf(k)) {
		return l.lacks, true
	}
	if l.asking = false; isLast && len(l.lacks) == 0 {
		delete(s.lists, k)
	}
	return nil, false
}

// complete has clients read a list again, unless that is up to a later one, or nobody needs it.
func (s *shortLists) complete(k shortKey, l *shortList) {
	s.mu.Lock()
	isLast := s.lists[k] == l
	if isLast {
		delete(s.lists, k)
	}
	s.mu.Unlock()
	if !isLast {
		return
	}
	t := topicOf(k)
	s.heed(t.Scope, t.Kind)
	s.changes.Publish(fanout.Event{Topic: t, URI: t.URI})
}
