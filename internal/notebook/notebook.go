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

	// mu guards the fields below, and the subs of every ear. Its cues have a lock
	// of their own, which is never taken under this one.
	mu     sync.Mutex
	notes  map[string]string
	search bool // the search tool is there
	ears   map[*ear]struct{}
}

// An ear is what hears of changes: a session, or a listen stream.
type ear struct {
	cues  *cues
	lists map[string]bool     // the list changes it hears of, by method; nil for all
	subs  map[string]struct{} // the URIs
}

// New returns a Notebook. It starts nothing.
func New(opts Options) *Notebook {
	notes := maps.Clone(opts.Notes)
	if notes == nil {
		notes = map[string]string{"todo": "buy milk", "journal": "day one"}
	}
	return &Notebook{
		version: cmp.Or(opts.Version, "dev"),
		log:     cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		notes:   notes,
		ears:    make(map[*ear]struct{}),
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

// subscribe adds uri to what e hears of. It reports whether there was room.
func (n *Notebook) subscribe(e *ear, uri string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, there := e.subs[uri]; !there && len(e.subs) >= maxSubscriptions {
		return false
	}
	e.subs[uri] = struct{}{}
	return true
}

func (n *Notebook) unsubscribe(e *ear, uri string) {
	n.mu.Lock()
	delete(e.subs, uri)
	n.mu.Unlock()
	e.cues.drop(cue{spec.NotifyResourceUpdated, uri})
}

func (n *Notebook) add(e *ear) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ears[e] = struct{}{}
}

func (n *Notebook) remove(e *ear) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ears, e)
}

// tellAll leaves a cue with everyone who hears of that list.
func (n *Notebook) tellAll(c cue) {
	n.tell(c, func(e *ear) bool { return e.lists == nil || e.lists[c.method] })
}

// tellSubscribers leaves a cue with those subscribed to exactly uri.
func (n *Notebook) tellSubscribers(uri string) {
	n.tell(cue{spec.NotifyResourceUpdated, uri}, func(e *ear) bool {
		_, ok := e.subs[uri]
		return ok
	})
}

// tell leaves a cue with the ears that hear it.
func (n *Notebook) tell(c cue, hears func(*ear) bool) {
	n.mu.Lock()
	var found []*ear
	for e := range n.ears {
		if hears(e) {
			found = append(found, e)
		}
	}
	n.mu.Unlock()
	for _, e := range found {
		e.cues.mark(c)
	}
}
