package replicas

import (
	"slices"
	"strings"
	"time"
)

// A View is what was last heard of the replicas. It is read-only.
type View struct {
	Self    Replica
	Members []Replica // those that live, with Self, sorted by Instance
	Heard   time.Time // when the engine was last heard; zero if never
	Away    time.Time // since when it is away; zero if it is there
	Slowest Pace      // of those that live
	// Gathered is when those that live have said so once more, after the engine had been away or had
	// forgotten them; zero if it never had.
	Gathered time.Time

	// Changed is closed by the next change of Members, of Away, or of the holder of a name
	// that this replica wants.
	Changed <-chan struct{}
}

// Member returns the living replica of that instance.
func (v *View) Member(instance string) (Replica, bool) {
	i, found := slices.BinarySearchFunc(v.Members, instance, func(r Replica, instance string) int {
		return strings.Compare(r.Instance, instance)
	})
	if !found {
		return Replica{}, false
	}
	return v.Members[i], true
}

// Fresh reports whether the engine was heard within two heartbeats of this replica, so that
// kept results may be served.
func (v *View) Fresh(now time.Time) bool {
	return v.Away.IsZero() && now.Sub(v.Heard) <= 2*v.Self.Pace.Every()
}

// KnowsAll reports whether those that live are Members: not before the engine was heard, nor before they
// had time to tell it again.
func (v *View) KnowsAll(now time.Time) bool { return !v.Heard.IsZero() && !now.Before(v.Gathered) }

// Pick chooses a replica for name, the same in each replica with the same
// members: the one of the highest hash. If a replica leaves, only its names
// move. Those that are draining are chosen if nobody else is left.
func (v *View) Pick(name string) Replica {
	return v.PickBut(name, "")
}

// PickBut chooses as Pick does, but never a replica of which is known that it is gone.
func (v *View) PickBut(name, gone string) Replica {
	best, found := v.pick(name, gone, false)
	if !found {
		best, found = v.pick(name, gone, true)
	}
	if !found {
		return v.Self
	}
	return best
}

// Choose returns the replica that all choose for a name: the one that an engine lets claim it
// first.
func (v *View) Choose(name string) Replica { return v.Pick(Key(name)) }

func (v *View) pick(name, gone string, draining bool) (best Replica, found bool) {
	var highest uint64
	for _, r := range v.Members {
		if r.Draining && !draining || r.Instance == gone {
			continue
		}
		if w := weight(r.Instance, name); !found || w > highest {
			best, highest, found = r, w, true
		}
	}
	return best, found
}

// weight is FNV-1a over both strings, mixed: the last bytes of FNV alone reach
// too few bits to compare by.
func weight(instance, name string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(instance) {
		h = (h ^ uint64(instance[i])) * prime
	}
	h = (h ^ 0xff) * prime // no string of UTF-8 has this byte
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
