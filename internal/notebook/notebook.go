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
)

// What one notebook holds at most: it is reached by anybody who finds it.
const (
	maxNotes         = 1000
	maxName          = 128     // bytes
	maxText          = 1 << 20 // bytes
	maxSubscriptions = 1000    // of one session
)

// uriPrefix makes a note's URI of its name.
const uriPrefix = "note://"

// Options configure a Notebook. The zero value is ready to use.
type Options struct {
	// Notes are the notes to begin with; nil means two, todo and journal.
	Notes map[string]string
	// Version is what the server calls its own; empty means "dev".
	Version string
	// Logger hears of sessions that ended badly; nil means nobody.
	Logger *slog.Logger
}

// A Notebook is the state that all of its sessions share. Its methods are safe
// for concurrent use.
type Notebook struct {
	// Set by New, read-only after.
	version string
	log     *slog.Logger

	// mu guards the fields below, and the subs of every session. A session's
	// cues have a lock of their own, which is never taken under this one.
	mu       sync.Mutex
	notes    map[string]string
	search   bool // the search tool is there
	sessions map[*session]struct{}
}

// New returns a Notebook. It starts nothing.
func New(opts Options) *Notebook {
	notes := maps.Clone(opts.Notes)
	if notes == nil {
		notes = map[string]string{"todo": "buy milk", "journal": "day one"}
	}
	return &Notebook{
		version:  cmp.Or(opts.Version, "dev"),
		log:      cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		notes:    notes,
		sessions: make(map[*session]struct{}),
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

// edit sets a note's text and then tells whoever asked to hear of it. Its error
// is for the one who called the tool.
func (n *Notebook) edit(name, text string) error {
	if err := checkNote(name, text); err != nil {
		return err
	}
	added, err := n.set(name, text)
	if err != nil {
		return err
	}
	if added {
		n.tellAll(cue{method: spec.NotifyResourcesListChanged})
	}
	n.tellSubscribers(uriPrefix + name)
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

// set reports whether the note is new.
func (n *Notebook) set(name, text string) (added bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, there := n.notes[name]
	if !there && len(n.notes) >= maxNotes {
		return false, fmt.Errorf("the notebook is full: it has %d notes", maxNotes)
	}
	n.notes[name] = text
	return !there, nil
}

// enableSearch adds the search tool and then tells everybody, the first time.
func (n *Notebook) enableSearch() {
	n.mu.Lock()
	was := n.search
	n.search = true
	n.mu.Unlock()
	if !was {
		n.tellAll(cue{method: spec.NotifyToolsListChanged})
	}
}

func (n *Notebook) searchEnabled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.search
}

// subscribe adds uri to what s hears of. It reports whether there was room.
func (n *Notebook) subscribe(s *session, uri string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, there := s.subs[uri]; !there && len(s.subs) >= maxSubscriptions {
		return false
	}
	s.subs[uri] = struct{}{}
	return true
}

func (n *Notebook) unsubscribe(s *session, uri string) {
	n.mu.Lock()
	delete(s.subs, uri)
	n.mu.Unlock()
	s.cues.drop(cue{spec.NotifyResourceUpdated, uri})
}

func (n *Notebook) add(s *session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sessions[s] = struct{}{}
}

func (n *Notebook) remove(s *session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.sessions, s)
}

// tellAll leaves a cue with every session.
func (n *Notebook) tellAll(c cue) {
	n.mu.Lock()
	all := slices.Collect(maps.Keys(n.sessions))
	n.mu.Unlock()
	for _, s := range all {
		s.cues.mark(c)
	}
}

// tellSubscribers leaves a cue with the sessions subscribed to exactly uri.
func (n *Notebook) tellSubscribers(uri string) {
	n.mu.Lock()
	var subscribed []*session
	for s := range n.sessions {
		if _, ok := s.subs[uri]; ok {
			subscribed = append(subscribed, s)
		}
	}
	n.mu.Unlock()
	for _, s := range subscribed {
		s.cues.mark(cue{spec.NotifyResourceUpdated, uri})
	}
}
