package pin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Options configure Pins.
type Options struct {
	// Dir is the user's folder for persistent state. Required.
	Dir string
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

// Pins are the accepted definitions of one server's tools. They are safe for concurrent
// use, also by several processes.
type Pins struct {
	opts Options

	// mu guards the fields below. It is held while the file is read or written, which
	// happens only if something has changed.
	mu      sync.Mutex
	file    *File
	read    time.Time         // the stamp of the file when it was read
	changed map[string]string // digests of definitions that are not accepted, by name
	told    map[string]string // those that have been logged
}

// Open reads the stored file of a server.
func Open(o Options) (*Pins, error) {
	if o.Dir == "" {
		return nil, errors.New("pin: there is no state folder; set state_dir, or pin: off")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = mcp.NoMetrics{}
	}
	p := &Pins{opts: o, read: stampOf(o.Dir, o.Server), changed: make(map[string]string), told: make(map[string]string)}
	var err error
	p.file, err = Read(o.Dir, o.Server)
	return p, err
}

// Digest returns the digest of a definition. It does not depend on the order of members,
// white space, or members that are null, which gateways may remove.
func Digest(definition []byte) string {
	var nulls []string
	for k, v := range wire.Members(definition) {
		if wire.IsNull(v) {
			nulls = append(nulls, k.String())
		}
	}
	sum := sha256.Sum256(wire.AppendCanonical(nil, wire.AppendWithoutNulls(nil, definition, nulls)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Refuses reports whether a tool must not be listed or called.
func (p *Pins) Refuses(tool string) bool {
	if !p.opts.Refuse {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isUnacceptedLocked(tool) {
		return false
	}
	p.reloadLocked()
	return p.isUnacceptedLocked(tool)
}

// isUnacceptedLocked reports whether a tool is new or has changed.
func (p *Pins) isUnacceptedLocked(tool string) bool {
	if d, changed := p.changed[tool]; changed && !p.acceptedLocked(tool, d) {
		return true
	}
	_, known := p.file.Tools[tool]
	return p.file.Complete && !known
}

func (p *Pins) acceptedLocked(tool, digest string) bool {
	return slices.Contains(p.file.Tools[tool].Digests, digest)
}

// A Page checks one page of the list of tools.
type Page struct {
	p     *Pins
	first []found // new tools, until there has been a complete list
}

type found struct {
	name, digest string
	definition   []byte
}

// Page returns a new page.
func (p *Pins) Page() *Page { return &Page{p: p} }

// Check reports whether a tool with this definition may be listed.
func (g *Page) Check(definition []byte) bool {
	tool, _ := wire.GetString(definition, "name")
	digest := Digest(definition)
	p := g.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.acceptedLocked(tool, digest) {
		delete(p.changed, tool)
		return true
	}
	if _, known := p.file.Tools[tool]; !known && !p.file.Complete {
		g.first = append(g.first, found{tool, digest, definition})
		return true
	}
	p.reloadLocked()
	if p.acceptedLocked(tool, digest) {
		delete(p.changed, tool)
		return true
	}
	p.noteLocked(tool, digest)
	return !p.opts.Refuse
}

// End ends the page. last says that it is the last one. Tools found before the first
// complete list are accepted.
func (g *Page) End(last bool) {
	p := g.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file.Complete || len(g.first) == 0 && !last {
		return
	}
	for _, f := range g.first {
		if len(p.file.Tools) < maxTools {
			p.file.accept(f.name, f.digest, f.definition)
		}
	}
	p.file.Complete = last
	if err := p.file.Write(p.opts.Dir); err != nil {
		p.opts.Logger.Error("pinned tools can't be stored: changes will go unnoticed after the next start", "upstream", p.opts.Server, "err", err)
		return
	}
	p.read = stampOf(p.opts.Dir, p.opts.Server)
	if last {
		p.opts.Logger.Info("tools pinned", "upstream", p.opts.Server, "tools", len(p.file.Tools))
		p.tell(Event{Digest: p.file.digest(), What: "the tools of the first complete list were accepted"})
	}
}

// noteLocked records a definition that is not accepted, and logs it once.
func (p *Pins) noteLocked(tool, digest string) {
	if len(p.changed) < maxTools {
		p.changed[tool] = digest
	}
	if p.told[tool] == digest || len(p.told) >= maxTools {
		return
	}
	p.told[tool] = digest
	what := "tool definition has changed"
	if _, known := p.file.Tools[tool]; !known {
		what = "tool is new"
	}
	p.opts.Metrics.Limit(p.opts.Server, "pin")
	p.opts.Logger.Warn(what+"; review it with mcpbridge pin "+p.opts.Server, "upstream", p.opts.Server, "tool", tool, "refused", p.opts.Refuse)
	p.tell(Event{Tool: tool, Digest: digest, What: what, Refused: p.opts.Refuse})
}

// reloadLocked rereads the file if another process has written it.
func (p *Pins) reloadLocked() {
	stamp := stampOf(p.opts.Dir, p.opts.Server)
	if stamp.Equal(p.read) {
		return
	}
	file, err := Read(p.opts.Dir, p.opts.Server)
	if err != nil {
		p.opts.Logger.Error("pinned tools not read", "upstream", p.opts.Server, "err", err)
		return
	}
	p.file, p.read = file, stamp
}
