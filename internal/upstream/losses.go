package upstream

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Why a client's state on a server is lost. Clients and metrics have these words.
const (
	LostIdle     = "idle"     // nobody used it for long
	LostLimit    = "limit"    // it made room for others
	LostAlone    = "alone"    // another process of the command had to be started
	LostExit     = "exit"     // the process ended by itself
	LostSession  = "session"  // the server lost the session, or its connection
	LostReplaced = "replaced" // the server was replaced by a reload, or is found to be of the other era
)

const (
	// maxLosses bounds the clients that are still to be told.
	maxLosses = 4096
	// maxHolders bounds the clients that are remembered of one session or process.
	maxHolders = 256
	// maxNamed is how many of them a line of the log names.
	maxNamed = 5
)

// Losses remembers which clients have lost state on a server until they are told. Safe for
// concurrent use.
type Losses struct {
	any  atomic.Int64 // the number of clients that are still to be told
	last atomic.Int64 // the number of the last loss

	// mu guards the fields below. It is a leaf.
	mu     sync.Mutex
	untold *simplelru.LRU[holder, loss]
	open   map[*Held]struct{}
	ending bool // nothing is a loss any more
}

// A holder is a client that may have state on a server, as far as clients that share a
// session can be distinguished.
type holder struct {
	server  string
	share   mcp.Share
	session string // of a legacy client
	name    string
}

func (h holder) String() string {
	name := h.name
	if name == "" {
		name = "unnamed client"
	}
	if h.share.Principal != "" && h.share.Principal != mcp.Anonymous {
		name += fmt.Sprintf(" (%s)", h.share.Principal)
	}
	return name
}

type loss struct {
	cause string
	at    int64 // its number; sessions that were opened before it do not tell it
}

// NewLosses returns Losses without any.
func NewLosses() *Losses {
	untold, err := simplelru.NewLRU[holder, loss](maxLosses, nil)
	if err != nil {
		panic(err) // maxLosses is positive
	}
	return &Losses{untold: untold, open: make(map[*Held]struct{})}
}

// Replaced records that all clients lose what they have on a server.
func (l *Losses) Replaced(server string) {
	l.mu.Lock()
	var of []*Held
	for h := range l.open {
		if h.opts.Name == server {
			of = append(of, h)
		}
	}
	l.mu.Unlock()
	for _, h := range of {
		h.Lose(LostReplaced)()
	}
}

// Stop is called before all servers end: that is not told any more.
func (l *Losses) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
}

// Held has the clients that may have state in one session with a server, or in one process.
// Whoever opens it calls Lose, Closed or End. Safe for concurrent use.
type Held struct {
	opts  *Options
	what  string // the cause if the server ends it
	born  int64  // the last loss before it was opened
	own   bool   // of one client, who knows when it has ended
	names mcp.ClientNames

	mu   sync.Mutex // guards the fields below; a leaf
	by   map[holder]struct{}
	full bool // there were more than maxHolders
}

// Hold returns a Held for a new session or process. what is [LostSession] or [LostExit], and
// own says that one client alone has it, and knows when it has ended.
func (o *Options) Hold(what string, own bool) *Held {
	l := o.Losses
	h := &Held{opts: o, what: what, born: l.last.Load(), own: own, by: make(map[holder]struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[h] = struct{}{}
	return h
}

// Note records that the client of a request may have state from now on.
func (h *Held) Note(req *mcp.Request) {
	if !req.Profile.Single { // else it ends with the request
		h.add(h.holderOf(req))
	}
}

// NoteLater returns what does as Note, the first time.
func (h *Held) NoteLater(req *mcp.Request) func() {
	who := h.holderOf(req)
	return sync.OnceFunc(func() { h.add(who) })
}

func (h *Held) add(who holder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.by[who]; !known && len(h.by) == maxHolders {
		h.full = true
	} else if !known {
		h.by[who] = struct{}{}
	}
}

func (h *Held) holderOf(req *mcp.Request) holder {
	share := req.Share
	share.Charged = false
	return holder{h.opts.Name, share, req.Session, h.names.Of(req.ClientInfo)}
}

// Owed returns why the client of a request has lost state before h was opened, once; empty if
// it has not.
func (h *Held) Owed(req *mcp.Request) string {
	l := h.opts.Losses
	if l.any.Load() == 0 {
		return "" // the usual case
	}
	who := h.holderOf(req)
	l.mu.Lock()
	defer l.mu.Unlock()
	lost, ok := l.untold.Peek(who)
	if !ok || lost.at > h.born {
		return ""
	}
	l.untold.Remove(who)
	l.any.Store(int64(l.untold.Len()))
	return lost.cause
}

// End says that h, which may be nil, ends and nobody loses anything.
func (h *Held) End() {
	if h != nil {
		h.take()
	}
}

// take returns the clients, once.
func (h *Held) take() (by map[holder]struct{}, full bool) {
	h.opts.Losses.mu.Lock()
	delete(h.opts.Losses.open, h)
	h.opts.Losses.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	by, full = h.by, h.full
	h.by, h.full = make(map[holder]struct{}), false
	return by, full
}

// Ended is Lose if the server has ended the session or process.
func (h *Held) Ended() (log func()) { return h.Lose(h.what) }

// Lose records that the clients of h have lost their state, and counts it. It returns what
// logs that; it may be called again.
func (h *Held) Lose(cause string) (log func()) { return h.lose(cause, false) }

// Closed is Lose when h, which may be nil, ends with all that its server has. The server was replaced
// before, unless everything ends: what the last requests to it have left there is lost to the sessions
// with the next one, also to those that are open already.
func (h *Held) Closed() (log func()) {
	if h == nil {
		return func() {}
	}
	return h.lose(LostReplaced, true)
}

// lose is Lose. before says that the clients are told in sessions that were opened before, too.
func (h *Held) lose(cause string, before bool) (log func()) {
	by, full := h.take()
	forgotten, counts := h.opts.Losses.remember(h, by, cause, before)
	if !counts {
		return func() {}
	}
	h.opts.Metrics.StateLost(h.opts.Name, cause, len(by))
	if forgotten > 0 || full {
		h.opts.Metrics.Limit(h.opts.Name, "state_lost")
	}
	return func() { h.log(by, cause, forgotten, full) }
}

// remember remembers a loss, for sessions that were opened before it, too, or not, and returns how
// many earlier ones had to be forgotten, and whether it is one.
func (l *Losses) remember(h *Held, by map[holder]struct{}, cause string, before bool) (forgotten int, counts bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending || len(by) == 0 || h.own {
		return 0, !l.ending && len(by) > 0
	}
	at := int64(0)
	if !before {
		at = l.last.Add(1)
	}
	for who := range by {
		lost := loss{cause, at}
		if untold, ok := l.untold.Peek(who); ok {
			lost.at = min(at, untold.at)
		}
		if l.untold.Add(who, lost) {
			forgotten++
		}
	}
	l.any.Store(int64(l.untold.Len()))
	return forgotten, true
}

func (h *Held) log(by map[holder]struct{}, cause string, forgotten int, full bool) {
	var names []string
	for who := range by {
		if names = append(names, who.String()); len(names) == maxNamed {
			break
		}
	}
	text := "clients may have lost state that the server had of them; each is told with its next result"
	if h.own {
		text = "a client may have lost state that the server had of it: its session has ended"
	}
	h.opts.Logger.Warn(text, "cause", cause, "clients", len(by), "client", strings.Join(names, ", "))
	if forgotten > 0 || full {
		h.opts.Logger.Warn("some clients will not be told that their state is lost: too many are to be told", "forgotten", forgotten, "limit", maxLosses, "limit_each", maxHolders)
	}
}

// Owed is [Held.Owed] for a server that has neither sessions nor processes.
func (o *Options) Owed(req *mcp.Request) string {
	if o.Losses.any.Load() == 0 {
		return ""
	}
	return (&Held{opts: o, born: math.MaxInt64}).Owed(req)
}
