package group

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// listenAgain are the pauses before a member whose stream has ended is listened to again.
var listenAgain = wake.Backoff{Min: time.Second, Max: 30 * time.Second}

// serveListen serves the part of a listen request that is about tasks and extensions, with
// streams of the members' own. Changes of lists and resources are followed as by other clients:
// the front has subscribed to them. There is one acknowledgment, of what members take within the
// group's patience, and nothing else is delivered. A member whose stream ends is listened to
// again. What it would have told meanwhile is not known, and it may take less than before, so once
// it answers, the client's stream ends: the client listens, and looks, again.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Acknowledgment and Graceful Closure.
func (b *Back) serveListen(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	s := &listening{b: b, caller: c, filter: wire.Get(req.Params, memberFilter), acknowledged: make(chan struct{})}
	if err := s.divide(req); err != nil {
		return nil, err
	}
	all, cancel := context.WithCancel(ctx)
	s.end = cancel
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, p := range s.parts {
		var own context.Context
		own, p.cancel = context.WithCancel(all)
		running.Go(func() { p.run(own) }) // ends with all at the latest
	}
	if err := s.acknowledge(ctx); err != nil {
		return nil, err
	}
	if s.hold(all); ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	meta := wire.AppendEdited(nil, nil, wire.Edit{Name: spec.MetaServerInfo, Value: b.opts.ServerInfo})
	res := mcp.NewResult(wire.AppendEdited(nil, nil, wire.Edit{Name: "resultType", Value: wire.Quote(spec.ResultComplete)}, wire.Edit{Name: "_meta", Value: meta}), nil)
	res.Era = spec.Modern
	return res, nil
}

// A listening is one listen request.
type listening struct {
	b            *Back
	caller       mcp.Caller
	filter       []byte          // the client's
	ids          []byte          // of tasks in it, an array
	parts        []*listenedPart // one for each member that gets a part of the filter
	acknowledged chan struct{}   // closed once the client has the acknowledgment
	end          func()          // ends the client's stream, gracefully
}

// hold waits for the end of ctx. A member that a reload takes out of the group tells nothing more.
func (s *listening) hold(ctx context.Context) {
	for of := s.b; of != nil; of = of.next.Load() {
		for _, p := range s.parts {
			if of.roster.place(p.m.Name) < 0 {
				p.cancel()
			}
		}
		select {
		case <-of.background.Live().Done():
		case <-ctx.Done():
			return
		}
	}
	<-ctx.Done() // which ends soon, since the group does
}

// divide makes the parts. An id of a task goes to the member whose it is, and what is not known
// here to all modern members.
func (s *listening) divide(req *mcp.Request) (err error) {
	if !wire.IsObject(s.filter) {
		return mcp.Refuse(spec.CodeInvalidParams, "params.%s is missing or not an object", memberFilter)
	}
	if s.ids, err = only(s.filter, spec.FilterTaskIDs); err != nil {
		return err
	}
	from := params{name: memberFilter, subject: s.filter, meta: wire.Get(req.Params, "_meta")}
	var unknown []wire.Edit
	for k, v := range wire.Members(s.filter) {
		if !isKnownKind(k) && !k.Is(spec.FilterTaskIDs) {
			unknown = append(unknown, wire.Edit{Name: k.String(), Value: v})
		}
	}
	for i := range s.b.roster.names {
		m, err := s.b.roster.at(i)
		if err != nil {
			continue
		}
		p := &listenedPart{listening: s, m: m, tasks: make(map[string]string), settled: make(chan struct{})}
		extensions := unknown
		if m.Era() == spec.Legacy {
			extensions = nil // it tells of tasks alone
		}
		if own := p.takeTasks(); own != nil || len(extensions) > 0 {
			filter := wire.AppendEdited(nil, nil, append(slices.Clone(extensions), wire.Edit{Name: spec.FilterTaskIDs, Value: own})...)
			sent, err := s.b.sealing.forMember(req, &from, &m, filter)
			if err != nil {
				return err
			}
			p.req = &sent.Request
			s.parts = append(s.parts, p)
		}
	}
	return nil
}

// isKnownKind reports whether a member of a filter is one that the front serves.
func isKnownKind(k wire.Key) bool {
	return k.Is("toolsListChanged") || k.Is("promptsListChanged") || k.Is("resourcesListChanged") || k.Is("resourceSubscriptions")
}

// acknowledge tells the client what members take. Those that have not said so in time tell
// nothing.
func (s *listening) acknowledge(ctx context.Context) error {
	patience := time.NewTimer(s.b.opts.Patience)
	defer patience.Stop()
	for _, p := range s.parts {
		select {
		case <-p.settled:
		case <-patience.C:
			for _, late := range s.parts {
				late.settle(nil)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	params := wire.AppendEdited(nil, nil, wire.Edit{Name: memberFilter, Value: s.granted()})
	if err := s.caller.Notify(ctx, mcp.Notification{Method: spec.NotifyAcknowledged, Params: params}); err != nil {
		return err
	}
	close(s.acknowledged)
	return nil
}

// granted returns the part of the client's filter that members take, in the client's order.
func (s *listening) granted() []byte {
	var taken []wire.Edit
	for k, v := range wire.Members(s.filter) {
		switch {
		case isKnownKind(k):
			continue
		case k.Is(spec.FilterTaskIDs):
			v = s.grantedTasks()
		default:
			v = s.grantedKind(k.String())
		}
		taken = append(taken, wire.Edit{Name: k.String(), Value: v})
	}
	return wire.AppendEdited(nil, nil, taken...)
}

func (s *listening) grantedTasks() []byte {
	taken := []byte{'['}
	seen := make(map[string]bool)
	for id := range wire.Elements(s.ids) {
		shown := wire.Unquote(id)
		if !seen[shown] && slices.ContainsFunc(s.parts, func(p *listenedPart) bool { return p.tells(shown) }) {
			taken = append(append(taken, id...), ',')
		}
		seen[shown] = true
	}
	return wire.CloseArray(taken)
}

// grantedKind returns what the first member that takes a member of the filter makes of it; nil if
// none takes it.
func (s *listening) grantedKind(name string) []byte {
	for _, p := range s.parts {
		if v := wire.Get(p.granted, name); v != nil {
			return v
		}
	}
	return nil
}

// A listenedPart is the stream of one member. It is the mcp.Caller of its request.
type listenedPart struct {
	*listening
	m      memberAt // as it was at the beginning
	req    *mcp.Request
	tasks  map[string]string // ids as the client knows them, by the member's own
	cancel context.CancelFunc

	once    sync.Once
	settled chan struct{} // closed once the member has acknowledged, or will not have
	granted []byte        // the filter that it takes, nil for nothing; written before
	missed  atomic.Bool   // a stream on which it told something has ended
}

// takeTasks stores the tasks of the member in the filter, and returns their own ids, an array;
// nil without any.
func (p *listenedPart) takeTasks() []byte {
	own := []byte{'['}
	for id := range wire.Elements(p.ids) {
		shown := wire.Unquote(id)
		of, inner, err := p.b.sealing.open(sealedTask, shown)
		if err != nil || of != p.m.Name || p.tasks[inner] != "" {
			continue
		}
		p.tasks[inner] = shown
		own = append(wire.AppendString(own, inner), ',')
	}
	if len(p.tasks) == 0 {
		return nil
	}
	return wire.CloseArray(own)
}

// tells reports whether the member tells of a task of the client.
func (p *listenedPart) tells(shown string) bool {
	return slices.ContainsFunc(wire.Strings(wire.Get(p.granted, spec.FilterTaskIDs)), func(own string) bool { return p.tasks[own] == shown })
}

// tellsAnything reports whether the member tells the client of anything.
func (p *listenedPart) tellsAnything() bool {
	for k, v := range wire.Members(p.granted) {
		switch {
		case k.Is(spec.FilterTaskIDs):
			if len(wire.Strings(v)) > 0 {
				return true
			}
		case string(v) != "false" && !wire.IsNull(v):
			return true
		}
	}
	return false
}

// settle stores what the member takes, once. The stream of one that takes nothing ends.
func (p *listenedPart) settle(granted []byte) {
	p.once.Do(func() {
		if p.granted = granted; granted == nil {
			p.cancel()
		}
		close(p.settled)
	})
}

// run listens to the member, again and again, until ctx ends. A member that refuses to be listened
// to again ends the client's stream as one that takes it does. One that can't answer is waited for.
func (p *listenedPart) run(ctx context.Context) {
	m := p.m
	for attempt := 0; ctx.Err() == nil; attempt++ {
		begun := time.Now()
		res, err := m.Serve(ctx, &copied(p.req).Request, p)
		res.Release()
		p.settle(nil) // without an acknowledgment it takes nothing
		if p.missed.Load() && (err == nil || refuses(err)) {
			p.end()
			return
		}
		p.missed.Store(p.tellsAnything())
		if time.Since(begun) > listenAgain.Max {
			attempt = 0
		}
		if wake.Wait(ctx, listenAgain.After(attempt)) != nil {
			return
		}
		if now, err := p.b.roster.at(m.index); err == nil {
			m = now // it may have been replaced
		}
	}
}

// refuses reports whether err is the answer of a member, and not that it can't answer for the moment.
func refuses(err error) bool {
	return errors.As(err, new(*wire.Error)) && !mcp.MayTryLater(err) && !errors.As(err, new(*mcp.UnavailableError))
}

// Notify implements [mcp.Caller].
func (p *listenedPart) Notify(ctx context.Context, n mcp.Notification) error {
	if n.Method == spec.NotifyAcknowledged {
		if p.missed.Load() {
			p.end()
		}
		p.settle(slices.Clone(wire.Get(n.Params, memberFilter)))
		return nil
	}
	select {
	case <-p.acknowledged:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if _, isChange := mcp.ChangeKind(n.Method); isChange {
		return nil // the front has them
	}
	switch n.Method {
	case spec.NotifyMessage:
		n.Params = owners.NameLogger(p.m.Name, n.Params)
	case spec.NotifyTasks:
		id, _ := wire.GetString(n.Params, memberTaskID)
		shown := p.tasks[id]
		if shown == "" || !p.tells(shown) {
			return nil
		}
		n.Params = wire.AppendReplaced(nil, n.Params, p.b.sealing.taskEdits(&p.m, n.Params, id, shown)...)
	}
	return p.caller.Notify(ctx, n)
}

// RequestInput implements [mcp.Caller]: nothing is asked on a stream.
func (p *listenedPart) RequestInput(context.Context, []mcp.InputRequest) ([]mcp.InputResponse, error) {
	return nil, mcp.ErrCannotAsk
}
