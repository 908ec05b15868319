package member

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// wish is a name that this replica wants.
type wish struct {
	claim   claim     // the last one of a holder that lived
	highest uint64    // epoch ever heard
	due     time.Time // when this replica takes the name; zero while its holder lives
	// doubted says that this replica held the name when its lease had run out: others may be
	// about to take it, and it acts on it when it has claimed it anew.
	doubted bool
	found   bool // this replica has heard of its claim from the store first
	// forgotten says that this replica was doubted for so long that others may have served the name without
	// a claim: it claims that anew in another epoch, once they have noticed.
	forgotten bool
	told      claim     // what the store has told last, whoever lives
	since     time.Time // when that was told first
	gone      time.Time // since when the claim of a holder that lives is missing; zero if it is not

	decisions uint64        // how often it became known who holds the name
	decided   chan struct{} // closed by the next time, or the end of the wish; nil if nobody waits
}

// tell notes what the store has told at a time, and returns when it did so first.
func (w *wish) tell(c claim, at time.Time) time.Time {
	if c != w.told || w.since.IsZero() {
		w.told, w.since = c, at
	}
	return w.since
}

// dueAt has the name taken at t, unless that is due before.
func (w *wish) dueAt(t time.Time) {
	if w.due.IsZero() || t.Before(w.due) {
		w.due = t
	}
}

// wishes are the names that this replica wants, and those that it gives up.
// picture.mu guards both maps. Methods that take self are told the instance of
// this replica.
type wishes struct {
	all     map[string]*wish // by key
	resigns map[string]bool  // keys whose claims are to be deleted in the background
	logger  *slog.Logger
	seen    replicas.Observer
}

func newWishes(logger *slog.Logger, seen replicas.Observer) *wishes {
	return &wishes{all: make(map[string]*wish), resigns: make(map[string]bool), logger: logger, seen: seen}
}

// keys are those of all wishes, in order.
func (ws *wishes) keys() []string { return slices.Sorted(maps.Keys(ws.all)) }

func (ws *wishes) want(key string) *wish {
	delete(ws.resigns, key)
	if ws.all[key] == nil {
		ws.all[key] = &wish{}
	}
	return ws.all[key]
}

// release ends a wish. It reports whether a claim is to be deleted.
func (ws *wishes) release(key, self string) bool {
	w := ws.all[key]
	if w == nil {
		return false
	}
	delete(ws.all, key)
	w.decide()
	if w.claim.holder != self {
		return false
	}
	ws.resigns[key] = true
	return true
}

// resignAll has all claims of this replica deleted. The wishes stay, and nobody waits for them any
// more.
func (ws *wishes) resignAll(self string) {
	for key, w := range ws.all {
		w.decide()
		if w.claim.holder == self {
			ws.resigns[key] = true
		}
	}
}

// resigned are the keys whose claims are to be deleted, in order.
func (ws *wishes) resigned() []string { return slices.Sorted(maps.Keys(ws.resigns)) }

// last is the last claim on a name of a holder that lived.
func (ws *wishes) last(key string) claim {
	if w := ws.all[key]; w != nil {
		return w.claim
	}
	return claim{}
}

// highest is the highest epoch of a name that was heard.
func (ws *wishes) highest(key string) uint64 {
	if w := ws.all[key]; w != nil {
		return w.highest
	}
	return 0
}

// own counts the names that this replica holds.
func (ws *wishes) own(self string) (n int) {
	for _, w := range ws.all {
		if w.claim.holder == self {
			n++
		}
	}
	return n
}

// note remembers who holds a name. It reports whether that claim is to be
// deleted, since the name was released meanwhile.
func (ws *wishes) note(key string, c claim, self string) bool {
	if w := ws.all[key]; w != nil {
		w.decide()
		switch {
		case w.claim == c:
			w.gone = time.Time{}
			if !w.doubted {
				w.due = time.Time{}
			}
		default:
			ws.moved(key, w, c, self)
		}
		return false
	}
	if c.holder != self {
		return false
	}
	ws.resigns[key] = true
	return true
}

// doubt has everything claimed anew that this replica holds: as if it had not held it, if others have
// forgotten it.
func (ws *wishes) doubt(now time.Time, self string, forgotten bool) {
	for _, w := range ws.all {
		if w.claim.holder == self {
			w.doubted, w.due, w.forgotten = true, now, w.forgotten || forgotten
		}
	}
}

// doubtOne has a claim of this replica claimed anew.
func (ws *wishes) doubtOne(key string, now time.Time, c claim) {
	if w := ws.all[key]; w != nil && w.claim == c {
		w.doubted, w.due = true, now
	}
}

// moved remembers who holds a name that is wanted.
func (ws *wishes) moved(key string, w *wish, c claim, self string) {
	if w.claim.holder == self && c.holder != self {
		ws.logger.Info("this replica yields a claim", "claim", key, "epoch", c.epoch, "to", c.holder)
		ws.seen.Moved("yielded")
	}
	w.claim, w.due, w.gone, w.doubted, w.found, w.forgotten = c, time.Time{}, time.Time{}, false, false, false
	w.highest = max(w.highest, c.epoch)
}

// taken tells of a claim of this replica. It needs no lock.
func (ws *wishes) taken(key string, before, after claim) {
	if before.holder == after.holder {
		ws.logger.Debug("this replica has claimed anew what it holds", "claim", key, "epoch", after.epoch)
		return
	}
	ws.seen.Moved("claimed")
	if before.holder == "" {
		ws.logger.Debug("this replica holds a claim", "claim", key, "epoch", after.epoch)
		return
	}
	ws.logger.Info("this replica takes over a claim", "claim", key, "epoch", after.epoch, "from", before.holder)
}

// due returns the keys that are to be taken, in order.
func (ws *wishes) due(now time.Time) (keys []string) {
	for key, w := range ws.all {
		if !w.due.IsZero() && !now.Before(w.due) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// nextDue is when the next name is to be taken, if that is before t.
func (ws *wishes) nextDue(t time.Time) time.Time {
	for _, w := range ws.all {
		t = sooner(t, w.due)
	}
	return t
}

// postpone has a name tried again a little later, unless it is due after that.
func (ws *wishes) postpone(key string, now time.Time) {
	if w := ws.all[key]; w != nil {
		w.due = later(w.due, now.Add(courtesy))
	}
}
