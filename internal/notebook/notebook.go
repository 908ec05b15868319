package notebook

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// The limits of a notebook, because any client that can reach it may use it.
const (
	maxNotes         = 1000
	maxName          = 128     // bytes
	maxText          = 1 << 20 // bytes
	maxSubscriptions = 1000    // of one session
)

// The URI of a note is uriPrefix and its name.
const uriPrefix = "note://"

// Options configure a Notebook. The zero value is ready to use.
type Options struct {
	// Notes are the initial notes; nil means two, todo and journal.
	Notes map[string]string
	// Version is the server's version; empty means "dev".
	Version string
	// Logger logs sessions that end with an error; nil means no log.
	Logger *slog.Logger
}

// A Notebook is the state that all of its sessions share. Its methods are safe
// for concurrent use.
type Notebook struct {
	// Set by New, read-only after.
	version string
	log     *slog.Logger

	// mu guards the fields below, and the subs of every subscriber. The lock of
	// pending may be taken while it is held.
	mu          sync.Mutex
	notes       map[string]string
	search      bool // the search tool is listed
	subscribers map[*subscriber]struct{}
}

// A subscriber receives changes: a legacy session, or a listen stream.
type subscriber struct {
	pending *pending            // the client's
	lists   map[string]bool     // the notifications of lists that it receives; nil for all
	subs    map[string]struct{} // the URIs

	// Of a listen stream.
	id      wire.ID
	honored []byte // the acknowledged filter
}

// New returns a Notebook. It starts no goroutines.
func New(opts Options) *Notebook {
	notes := maps.Clone(opts.Notes)
	if notes == nil {
		notes = map[string]string{"todo": "buy milk", "journal": "day one"}
	}
	return &Notebook{
		version:     cmp.Or(opts.Version, "dev"),
		log:         cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		notes:       notes,
		subscribers: make(map[*subscriber]struct{}),
	}
}

// names returns the names of all notes in order.
func (n *Notebook) names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.notes))
}

// read returns a note by name.
func (n *Notebook) read(name string) (text string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text, ok = n.notes[name]
	return text, ok
}

// edit sets a note's text and then notifies the subscribers. Its error is for the tool's
// result.
func (n *Notebook) edit(name, text string) error {
	if err := checkNote(name, text); err != nil {
		return err
	}
	added, err := n.set(name, text)
	if err != nil {
		return err
	}
	if added {
		n.listChanged(spec.NotifyResourcesListChanged)
	}
	n.resourceUpdated(uriPrefix + name)
	return nil
}

func checkNote(name, text string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("a note's name has 1 to %d bytes", maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }):
		return errors.New("a note's name has no spaces or control characters")
	case len(text) > maxText:
		return fmt.Errorf("a note has at most %d bytes", maxText)
	}
	return nil
}

// set sets a note's text, and reports whether the note is new.
func (n *Notebook) set(name, text string) (added bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, exists := n.notes[name]
	if !exists && len(n.notes) >= maxNotes {
		return false, fmt.Errorf("the notebook is full: it has %d notes", maxNotes)
	}
	n.notes[name] = text
	return !exists, nil
}

// enableSearch adds the search tool. The first call notifies the subscribers.
func (n *Notebook) enableSearch() {
	n.mu.Lock()
	was := n.search
	n.search = true
	n.mu.Unlock()
	if !was {
		n.listChanged(spec.NotifyToolsListChanged)
	}
}

func (n *Notebook) searchEnabled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.search
}

// subscribe adds uri to the subscriptions of s. It reports false if s has too many.
func (n *Notebook) subscribe(s *subscriber, uri string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, exists := s.subs[uri]; !exists && len(s.subs) >= maxSubscriptions {
		return false
	}
	s.subs[uri] = struct{}{}
	return true
}

// unsubscribe removes uri, and its update if that has not been sent.
func (n *Notebook) unsubscribe(s *subscriber, uri string) {
	n.mu.Lock()
	delete(s.subs, uri)
	n.mu.Unlock()
	s.pending.remove(func(c change) bool { return c.to == s && c.uri == uri })
}

func (n *Notebook) add(s *subscriber) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subscribers[s] = struct{}{}
}

func (n *Notebook) remove(s *subscriber) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.subscribers, s)
}

// listChanged notifies the subscribers of a list.
func (n *Notebook) listChanged(method string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.subscribers {
		if s.lists == nil || s.lists[method] {
			s.pending.add(change{to: s, method: method})
		}
	}
}

// resourceUpdated notifies the subscribers of exactly uri.
func (n *Notebook) resourceUpdated(uri string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.subscribers {
		if _, ok := s.subs[uri]; ok {
			s.pending.add(change{s, spec.NotifyResourceUpdated, uri})
		}
	}
}
