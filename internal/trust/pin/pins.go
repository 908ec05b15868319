package pin

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Options configure Pins.
type Options struct {
	// Store keeps what was accepted. Required.
	Store Store
	// Server is the server's name. Required.
	Server string
	// Refuse says that a changed tool is hidden, and calls of it are refused. Otherwise it
	// is only logged.
	Refuse bool

	// Told is told of what is accepted, and of what was met that is not. Nil tells nobody.
	Told func(Event)

	Logger  *slog.Logger // nil discards
	Metrics mcp.Metrics  // nil counts nothing
}

// Pins are the accepted definitions of one server's tools. They are safe for concurrent use.
type Pins struct {
	opts   Options
	listed func(definition []byte) // of Observe; nil otherwise

	turn chan struct{} // capacity 1: held while the store is asked

	// mu guards the fields below. It is never held while the store is asked.
	mu      sync.Mutex
	file    *File           // not changed, but replaced; nil as long as it could not be loaded
	version string          // of file at the store
	unsaved bool            // the store could not be given file
	loaded  time.Time       // when the store was asked last
	failed  error           // why that failed; nil if it did not
	changed map[string]form // definitions that are not accepted, by name
	told    map[string]string
	reviews []*Review // not changed, but replaced
}

const (
	// patience bounds how long the store is waited for.
	patience = 2 * time.Second
	// pause is how long a store is not asked again that has failed.
	pause = time.Second
)

// ErrNotAccepted says that the definition of a tool was not accepted.
var ErrNotAccepted = errors.New("its definition was not accepted")

// Open returns the Pins of a server. What is kept is read at once, but for a [Shared] Store:
// that may be away when the program begins, and is asked with the first request.
func Open(o Options) (*Pins, error) {
	if o.Store == nil {
		return nil, errors.New("pin: there is no state folder; set state_dir, or pin: off")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = mcp.NoMetrics{}
	}
	p := &Pins{opts: o, turn: make(chan struct{}, 1), changed: make(map[string]form), told: make(map[string]string)}
	if _, shared := o.Store.(*Shared); shared {
		return p, nil
	}
	return p, p.refresh()
}

// Observe returns Pins that accept everything, and tell f of each definition that is listed, as
// it is compared where tools are pinned.
func Observe(f func(definition []byte)) *Pins { return &Pins{listed: f} }

// Refusal returns why a call of a tool, or for an empty name the list of all tools, is to be
// refused: [ErrNotAccepted], or why what was accepted is not known. Nil means that it is not.
func (p *Pins) Refusal(tool string) error {
	if !p.opts.Refuse {
		return nil
	}
	p.mu.Lock()
	known, bad := p.file != nil, p.isUnacceptedLocked(tool)
	p.mu.Unlock()
	if known && !bad {
		return nil
	}
	err := p.refresh()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.file == nil:
		return err
	case p.isUnacceptedLocked(tool):
		return ErrNotAccepted
	}
	return nil
}

// isUnacceptedLocked reports whether a tool is new or has changed.
func (p *Pins) isUnacceptedLocked(tool string) bool {
	if p.file == nil || tool == "" {
		return false
	}
	t, known := p.file.Tools[tool]
	if m, changed := p.changed[tool]; changed && !t.accepts(&m) {
		return true
	}
	return p.file.Complete && !known
}

// refresh loads what is kept, if that may be something else than what is known.
func (p *Pins) refresh() error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.mu.Lock()
	known, version, loaded, failed, unsaved := p.file, p.version, p.loaded, p.failed, p.unsaved
	p.mu.Unlock()
	switch {
	case failed != nil && time.Since(loaded) < pause:
		return failed
	case unsaved && time.Since(loaded) < pause:
		return nil
	case unsaved:
		if err := p.swap(known, version); !errors.Is(err, ErrReplaced) {
			return err
		}
	case known != nil && failed == nil && !p.opts.Store.Stale(p.opts.Server, version, loaded):
		return nil
	}
	return p.load()
}

// load asks the store. It is called by whoever has the turn.
func (p *Pins) load() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	file, version, err := p.opts.Store.Load(ctx, p.opts.Server)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.failed == nil {
		p.opts.Logger.Error("pinned tools not read", "upstream", p.opts.Server, "err", err)
	}
	p.loaded, p.failed = time.Now(), err
	if err == nil && !(p.unsaved && version == p.version) {
		p.file, p.version, p.unsaved = file, version, false
	}
	return err
}

// swap gives the store what this process has accepted, in the place of a version, and keeps it
// even if that fails: but for ErrReplaced. It is called by whoever has the turn.
func (p *Pins) swap(file *File, version string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	now, err := p.opts.Store.Swap(ctx, file, version)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, ErrReplaced):
		p.unsaved = false
		return err
	case err != nil:
		if !p.unsaved {
			p.opts.Logger.Error("pinned tools can't be stored: unless that succeeds later, changes will go unnoticed after the next start", "upstream", p.opts.Server, "err", err)
		}
		p.file, p.unsaved, p.loaded = file, true, time.Now()
		return err
	}
	p.file, p.version, p.unsaved, p.loaded, p.failed = file, now, false, time.Now(), nil
	return nil
}
