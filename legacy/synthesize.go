package legacy

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Synthesize says how often to look for changes that a server does not tell of,
// while somebody wants to hear of them. Zero means that the server's word is
// relied on.
type Synthesize struct {
	Tools     time.Duration // the list of tools
	Prompts   time.Duration // the list of prompts
	Resources time.Duration // the list of resources
	// Updates is for each resource that somebody subscribed to. They are read one
	// after another, so that a server may be slower than this demands.
	Updates time.Duration
}

func (o Synthesize) negative() bool {
	return o.Tools < 0 || o.Prompts < 0 || o.Resources < 0 || o.Updates < 0
}

// every returns how often to look for changes of a kind.
func (o Synthesize) every(k fanout.Kind) time.Duration {
	switch k {
	case fanout.ToolsListChanged:
		return o.Tools
	case fanout.PromptsListChanged:
		return o.Prompts
	case fanout.ResourcesListChanged:
		return o.Resources
	case fanout.ResourceUpdated:
		return o.Updates
	}
	return 0
}

// polledList is what there is to look at for changes of a list.
type polledList struct{ group, method, member string }

func polledListOf(k fanout.Kind) polledList {
	switch k {
	case fanout.ToolsListChanged:
		return polledList{"tools", spec.MethodToolsList, "tools"}
	case fanout.PromptsListChanged:
		return polledList{"prompts", spec.MethodPromptsList, "prompts"}
	}
	return polledList{"resources", spec.MethodResourcesList, "resources"}
}

// synthesizes returns the kinds of change that the gateway looks for: it must be
// told to, and the server must have what is looked at.
func (s *session) synthesizes() kinds {
	var out kinds
	for _, k := range []fanout.Kind{fanout.ToolsListChanged, fanout.PromptsListChanged, fanout.ResourcesListChanged, fanout.ResourceUpdated} {
		if s.opts.Synthesize.every(k) > 0 && declares(s.caps.raw, polledListOf(k).group) {
			out = out.with(k)
		}
	}
	return out
}

// synthesized returns capabilities with what the gateway looks after by itself.
func (s *session) synthesized(capabilities json.RawMessage) json.RawMessage {
	add := func(k fanout.Kind, member string) {
		if !s.synthesizes().has(k) {
			return
		}
		group := polledListOf(k).group
		value := wire.AppendEdited(nil, wire.Get(capabilities, group), wire.Edit{Name: member, Value: []byte("true")})
		capabilities = wire.AppendEdited(nil, capabilities, wire.Edit{Name: group, Value: value})
	}
	add(fanout.ToolsListChanged, "listChanged")
	add(fanout.PromptsListChanged, "listChanged")
	add(fanout.ResourcesListChanged, "listChanged")
	add(fanout.ResourceUpdated, "subscribe")
	return capabilities
}

// A poller looks for changes on one session, one look at a time. Its goroutine
// runs while there is something to look at.
type poller struct {
	s    *session
	wake chan struct{} // capacity 1: there is something new

	// mu guards the fields below. It is held for map work only.
	mu      sync.Mutex
	items   map[pollKey]*polled
	queue   polls
	running bool
}

type pollKey struct {
	kind fanout.Kind
	uri  string
}

type polled struct {
	key    pollKey
	digest [sha256.Size]byte
	due    time.Time
	over   bool // nobody wants it any more
}

// polls is a heap.Interface, what is due first on top.
type polls []*polled

func (q polls) Len() int           { return len(q) }
func (q polls) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q polls) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *polls) Push(x any)        { *q = append(*q, x.(*polled)) }

func (q *polls) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return x
}

func newPoller(s *session) *poller {
	return &poller{s: s, wake: make(chan struct{}, 1), items: make(map[pollKey]*polled)}
}

// watch takes a first look, which later ones are compared with, and begins to look
// again. The error is that of the look: a *wire.Error if the server refused.
func (p *poller) watch(ctx context.Context, key pollKey) error {
	digest, err := p.s.digest(ctx, key)
	if err != nil {
		return err
	}
	if !p.add(&polled{key: key, digest: digest, due: p.next(key)}) && !p.s.start(p.run) {
		return errClosed
	}
	select {
	case p.wake <- struct{}{}:
	default: // it will look anyway
	}
	return nil
}

// add reports whether the goroutine runs; if not, the caller starts it.
func (p *poller) add(item *polled) (running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.items[item.key]; old != nil {
		old.over = true
	}
	p.items[item.key] = item
	heap.Push(&p.queue, item)
	running, p.running = p.running, true
	return running
}

func (p *poller) unwatch(key pollKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if item := p.items[key]; item != nil {
		item.over = true
		delete(p.items, key)
	}
}

func (p *poller) next(key pollKey) time.Time {
	return time.Now().Add(jitter(p.s.opts.Synthesize.every(key.kind)))
}

// run looks at what is due until there is nothing to look at, or the session is
// gone.
func (p *poller) run() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		due, ok := p.first()
		if !ok {
			return
		}
		t.Reset(time.Until(due))
		select {
		case <-p.s.gone:
			return
		case <-p.wake:
		case <-t.C:
			p.lookNext(ctx)
		}
	}
}

// first returns when something is due. If there is nothing the goroutine counts
// as ended.
func (p *poller) first() (due time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 && p.queue[0].over {
		heap.Pop(&p.queue)
	}
	if p.running = len(p.queue) > 0; !p.running {
		return time.Time{}, false
	}
	return p.queue[0].due, true
}

// lookNext looks at what is due first.
func (p *poller) lookNext(ctx context.Context) {
	p.mu.Lock()
	if len(p.queue) == 0 {
		p.mu.Unlock()
		return
	}
	item := heap.Pop(&p.queue).(*polled)
	over := item.over
	p.mu.Unlock()
	if over {
		return
	}
	changed := p.look(ctx, item)
	p.mu.Lock()
	if over = item.over; !over {
		item.due = p.next(item.key)
		heap.Push(&p.queue, item)
	}
	p.mu.Unlock()
	if changed && !over {
		p.tell(item.key)
	}
}

// look compares what there is with what there was. A look that fails tells
// nothing.
func (p *poller) look(ctx context.Context, item *polled) (changed bool) {
	digest, err := p.s.digest(ctx, item.key)
	var refusal *wire.Error
	if errors.As(err, &refusal) && item.key.kind == fanout.ResourceUpdated {
		// That it can't be read any more is a change, too.
		digest, err = sha256.Sum256(strconv.AppendInt(nil, refusal.Code, 10)), nil
	}
	if err != nil {
		p.s.log.Debug("looking for changes", "kind", item.key.kind, "error", cause(err))
		return false
	}
	changed = item.digest != digest
	item.digest = digest
	return changed
}

func (p *poller) tell(key pollKey) {
	if key.kind == fanout.ToolsListChanged {
		p.s.tools.forget()
	}
	p.s.watch().changed(key.kind, key.uri, nil)
}

// digest fetches a list, all its pages, or a resource, and returns a digest of it.
// Members in another order, and what is said about the answer, make no change.
func (s *session) digest(ctx context.Context, key pollKey) (sum [sha256.Size]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeouts.Request)
	defer cancel()
	h := sha256.New()
	if key.kind == fanout.ResourceUpdated {
		result, err := s.request(ctx, spec.MethodResourcesRead, uriParams(key.uri))
		if err != nil {
			return sum, err
		}
		h.Write(wire.AppendCanonical(nil, wire.Get(result, "contents")))
		return [sha256.Size]byte(h.Sum(nil)), nil
	}
	list := polledListOf(key.kind)
	for page, err := range s.pages(ctx, list.method) {
		if err != nil {
			return sum, err
		}
		for item := range wire.Elements(wire.Get(page, list.member)) {
			h.Write(wire.AppendCanonical(nil, item))
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// subscribe implements watched: upstream if the server can, by looking if so
// configured.
func (s *session) subscribe(ctx context.Context, uri string) error {
	var refusal *wire.Error
	polls := s.synthesizes().has(fanout.ResourceUpdated)
	if s.caps.subscribe {
		_, err := s.request(ctx, spec.MethodSubscribe, uriParams(uri))
		if err != nil && !(polls && errors.As(err, &refusal)) {
			return err
		}
	}
	if !polls {
		return nil
	}
	err := s.polls.watch(ctx, pollKey{fanout.ResourceUpdated, uri})
	if errors.As(err, &refusal) && s.caps.subscribe {
		_ = s.unsubscribe(ctx, uri) // whether it worked does not matter: nobody listens
	}
	return err
}

// unsubscribe implements watched.
func (s *session) unsubscribe(ctx context.Context, uri string) error {
	s.polls.unwatch(pollKey{fanout.ResourceUpdated, uri})
	if !s.caps.subscribe {
		return nil
	}
	_, err := s.request(ctx, spec.MethodUnsubscribe, uriParams(uri))
	return err
}

// watchList implements watched.
func (s *session) watchList(ctx context.Context, k fanout.Kind) error {
	return s.polls.watch(ctx, pollKey{kind: k})
}

// unwatchList implements watched.
func (s *session) unwatchList(k fanout.Kind) { s.polls.unwatch(pollKey{kind: k}) }
