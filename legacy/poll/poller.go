package poll

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Session is the session that is polled. Its methods are safe for concurrent use.
type Session interface {
	// Request sends a request of the gateway itself. The error is the server's as a
	// [*wire.Error], or another.
	Request(ctx context.Context, method string, params []byte) (json.RawMessage, error)
	// Start runs f on a goroutine of the session, which ends after it. It returns false if
	// the session has ended.
	Start(f func()) bool
	// Done is closed when the session is lost or has ended.
	Done() <-chan struct{}
}

// Options configure a Poller.
type Options struct {
	Every   Intervals
	Timeout time.Duration // of one poll
	Logger  *slog.Logger
	// Changed is called for a change; uri is the changed resource, or empty.
	Changed func(k fanout.Kind, uri string)
}

// A Poller polls for changes on one session, one poll at a time. Its goroutine runs while
// there is something to poll. It is safe for concurrent use.
type Poller struct {
	s    Session
	opts Options
	wake wake.Signal // polls has changed

	// mu guards the fields below. It is held for map work only.
	mu      sync.Mutex
	items   map[key]*polled
	queue   polls
	running bool
}

// A key is what is polled: a list, or a resource.
type key struct {
	kind fanout.Kind
	uri  string
}

type polled struct {
	key    key
	digest [sha256.Size]byte
	due    time.Time
	over   bool // it has no subscribers any more
}

// polls is a heap.Interface, with the next poll on top.
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

// New returns a Poller with nothing to poll.
func New(s Session, o Options) *Poller {
	return &Poller{s: s, opts: o, wake: wake.NewSignal(), items: make(map[key]*polled)}
}

// Watch polls a list, or the resource uri, for the first time, and starts further polls,
// which are compared with the one before. The error is that of the first poll: a
// *wire.Error if the server refused.
func (p *Poller) Watch(ctx context.Context, kind fanout.Kind, uri string) error {
	k := key{kind, uri}
	digest, err := p.digest(ctx, k)
	if err != nil {
		return err
	}
	if !p.add(&polled{key: k, digest: digest, due: p.next(k)}) && !p.s.Start(p.run) {
		return mcp.ErrShutdown
	}
	p.wake.Send()
	return nil
}

// add adds an item, and reports whether the goroutine runs; if not, the caller must start
// it.
func (p *Poller) add(item *polled) (running bool) {
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

// Unwatch ends Watch.
func (p *Poller) Unwatch(kind fanout.Kind, uri string) {
	k := key{kind, uri}
	p.mu.Lock()
	defer p.mu.Unlock()
	if item := p.items[k]; item != nil {
		item.over = true
		delete(p.items, k)
	}
}

func (p *Poller) next(k key) time.Time {
	return time.Now().Add(wake.Jitter(p.opts.Every.of(k.kind)))
}

// run polls until there is nothing to poll, or the session has ended.
func (p *Poller) run() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	t := time.NewTimer(time.Hour) // until it is reset
	defer t.Stop()
	for {
		due, ok := p.first()
		if !ok {
			return
		}
		t.Reset(wake.Positive(time.Until(due)))
		select {
		case <-p.s.Done():
			return
		case <-p.wake:
		case <-t.C:
			p.lookNext(ctx)
		}
	}
}

// first returns when the next poll is due. If there is none, the goroutine counts as ended.
func (p *Poller) first() (due time.Time, ok bool) {
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

// lookNext runs the next poll.
func (p *Poller) lookNext(ctx context.Context) {
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
		p.opts.Changed(item.key.kind, item.key.uri)
	}
}

// look polls an item, and reports whether it has changed. A failed poll means no change.
func (p *Poller) look(ctx context.Context, item *polled) (changed bool) {
	digest, err := p.digest(ctx, item.key)
	if refusal, ok := errors.AsType[*wire.Error](err); ok && item.key.kind == fanout.ResourceUpdated {
		// An error response is a state, too: it can't be read any more.
		digest, err = sha256.Sum256(strconv.AppendInt(nil, refusal.Code, 10)), nil
	}
	if err != nil {
		p.opts.Logger.Debug("polling for changes", "kind", item.key.kind, "error", transport.Cause(err))
		return false
	}
	changed = item.digest != digest
	item.digest = digest
	return changed
}

// digest fetches all pages of a list, or a resource, and returns its digest. The order of
// members does not matter, nor do members about the response itself.
func (p *Poller) digest(ctx context.Context, k key) (sum [sha256.Size]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	h := sha256.New()
	if k.kind == fanout.ResourceUpdated {
		params := wire.AppendEdited(nil, nil, wire.Edit{Name: "uri", Value: wire.Quote(k.uri)})
		result, err := p.s.Request(ctx, spec.MethodResourcesRead, params)
		if err != nil {
			return sum, err
		}
		h.Write(wire.AppendCanonical(nil, wire.Get(result, "contents")))
		return [sha256.Size]byte(h.Sum(nil)), nil
	}
	l := listOf(k.kind)
	for page, err := range upstream.Pages(ctx, l.method, p.s.Request) {
		if err != nil {
			return sum, err
		}
		for item := range wire.Elements(wire.Get(page, l.member)) {
			h.Write(wire.AppendCanonical(nil, item))
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
