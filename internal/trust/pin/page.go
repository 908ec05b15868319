package pin

import (
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// found is a tool in a list.
type found struct {
	name string
	form
}

// Check reports which definitions of a page of the list of tools may be shown. last says that
// the page is the last one. Tools found before the first complete list are accepted.
func (p *Pins) Check(definitions [][]byte, last bool) (shown []bool) {
	shown = make([]bool, len(definitions))
	if p.listed != nil {
		for i, d := range definitions {
			p.listed(d)
			shown[i] = true
		}
		return shown
	}
	p.reviewed(definitions)
	page := make([]found, len(definitions))
	for i, d := range definitions {
		page[i].name, _ = wire.GetString(d, "name")
		page[i].form = formOf(d)
	}
	_ = p.refresh() // it is logged; what was known counts
	for range tries {
		if p.acceptFirst(page, last) {
			break
		}
	}
	p.compare(page, shown)
	return shown
}

// acceptFirst accepts what is found before the first complete list. It reports false if another
// process was faster, so that its list counts.
func (p *Pins) acceptFirst(page []found, last bool) bool {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.mu.Lock()
	file, version := p.file, p.version
	p.mu.Unlock()
	if file == nil || file.Complete {
		return true
	}
	var first []found
	for _, m := range page {
		if _, known := file.Tools[m.name]; !known {
			first = append(first, m)
		}
	}
	if len(first) == 0 && !last {
		return true
	}
	file = file.with(first, last)
	err := p.swap(file, version)
	if errors.Is(err, ErrReplaced) {
		return p.load() != nil
	}
	if err == nil && last {
		p.opts.Logger.Info("tools pinned", "upstream", p.opts.Server, "tools", len(file.Tools))
	}
	if last { // it counts, stored or not
		p.tell(Event{Digest: file.digest(), What: "the tools of the first complete list were accepted"})
	}
	return true
}

// compare finds out which tools of a page were accepted, and notes the others.
func (p *Pins) compare(page []found, shown []bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range page {
		m := &page[i]
		shown[i] = !p.opts.Refuse
		if p.file == nil {
			continue
		}
		if t := p.file.Tools[m.name]; t.accepts(&m.form) {
			delete(p.changed, m.name)
			shown[i] = true
			continue
		}
		p.noteLocked(m)
	}
}

// noteLocked records a definition that is not accepted, and logs it once.
func (p *Pins) noteLocked(m *found) {
	if len(p.changed) < maxTools {
		p.changed[m.name] = m.digests()
	}
	if p.told[m.name] == m.said || len(p.told) >= maxTools {
		return
	}
	p.told[m.name] = m.said
	what := "tool definition has changed"
	if _, known := p.file.Tools[m.name]; !known {
		what = "tool is new"
	}
	p.opts.Metrics.Limit(p.opts.Server, "pin")
	p.opts.Logger.Warn(what+"; review it with mcpbridge pin "+p.opts.Server, "upstream", p.opts.Server, "tool", m.name, "refused", p.opts.Refuse)
	p.tell(Event{Tool: m.name, Digest: m.said, What: what, Refused: p.opts.Refuse})
}
