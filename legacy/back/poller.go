package back

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

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
	if !p.add(&polled{key: key, digest: digest, due: p.next(key)}) && !p.s.Start(p.run) {
		return mcp.ErrShutdown
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
	return time.Now().Add(backoff.Jitter(p.s.opts.Synthesize.every(key.kind)))
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
		case <-p.s.Done():
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
		p.s.tools.Forget()
	}
	p.s.watch().Changed(key.kind, key.uri, nil)
}
