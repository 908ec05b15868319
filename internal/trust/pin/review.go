package pin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// maxReview limits the definitions that a Review keeps, in bytes.
const maxReview = 16 << 20

// A Review has the definitions that a server lists, for a person to look at those that were not
// accepted. Safe for concurrent use.
type Review struct {
	pins *Pins

	// mu guards the fields below.
	mu          sync.Mutex
	definitions [][]byte
	bytes       int
}

// Review has list list all tools of the server by p, and keeps their definitions. What other
// clients list at the same time is among them.
func (p *Pins) Review(list func() error) (*Review, error) {
	r := &Review{pins: p}
	p.mu.Lock()
	p.reviews = append(slices.Clone(p.reviews), r)
	p.mu.Unlock()
	err := list()
	p.mu.Lock()
	p.reviews = slices.DeleteFunc(slices.Clone(p.reviews), func(one *Review) bool { return one == r })
	p.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.bytes > maxReview {
		err = fmt.Errorf("the definitions of its tools are over %d MiB: look at them with mcpbridge pin %s", maxReview>>20, p.opts.Server)
	}
	return r, err
}

// reviewed gives definitions to whoever looks.
func (p *Pins) reviewed(definitions [][]byte) {
	p.mu.Lock()
	all := p.reviews
	p.mu.Unlock()
	for _, r := range all {
		r.add(definitions)
	}
}

func (r *Review) add(definitions [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range definitions {
		if r.bytes += len(d); r.bytes <= maxReview {
			r.definitions = append(r.definitions, slices.Clone(d))
		}
	}
}

// Changes returns the tools that were not accepted as they are, ordered by name.
func (r *Review) Changes() ([]Change, error) {
	if err := r.pins.refresh(); err != nil {
		return nil, err
	}
	r.pins.mu.Lock()
	file := r.pins.file
	r.pins.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := file.Compare(r.definitions)
	return slices.DeleteFunc(changes, func(c Change) bool { return c.Is == nil }), nil
}

// ErrChangedAgain says that a tool is not as it was shown to whoever has accepted it.
var ErrChangedAgain = errors.New("it is not as it was shown any more; look at it anew")

// Accept accepts tools as they were shown, which their digests say: all, or none.
func (r *Review) Accept(ctx context.Context, digests map[string]string) ([]Change, error) {
	changes, err := r.Changes()
	if err != nil {
		return nil, err
	}
	var chosen []Change
	for tool, digest := range digests {
		at := slices.IndexFunc(changes, func(c Change) bool { return c.Tool == tool && Digest(c.Is) == digest })
		if at < 0 {
			return nil, fmt.Errorf("tool %q: %w", tool, ErrChangedAgain)
		}
		chosen = append(chosen, changes[at])
	}
	_, err = Update(ctx, r.pins.opts.Store, r.pins.opts.Server, func(f *File) {
		for _, c := range chosen {
			f.Accept(c)
		}
	})
	return chosen, err
}

// Knows reports whether a definition of a tool was accepted.
func (r *Review) Knows(tool string) bool {
	r.pins.mu.Lock()
	defer r.pins.mu.Unlock()
	if r.pins.file == nil {
		return false
	}
	_, known := r.pins.file.Tools[tool]
	return known
}
