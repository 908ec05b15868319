package pin

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// An events is what Told was told.
type events []string

func (e *events) told(v Event) {
	text := v.What + " " + v.Tool + " " + v.Digest
	if v.Refused {
		text += " refused"
	}
	*e = append(*e, text)
}

const firstList = "the tools of the first complete list were accepted"

// The audit log hears of the first list, from whoever accepts it, and of each other definition
// once.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		open := func(told *events) *Pins {
			p, err := Open(Options{Store: NewShared(e, nil, slog.New(slog.DiscardHandler)), Server: "files", Refuse: true, Told: told.told})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		var faster, slower events
		first, second := open(&faster), open(&slower)
		e.between = func() { list(first, true, good) }
		for range 2 {
			list(second, true, evil, more)
		}
		f := newFile("files").with([]found{{"read", formOf([]byte(good))}}, true)
		if want := (events{firstList + "  " + f.digest()}); !slices.Equal(faster, want) {
			t.Errorf("the faster replica told %q, want %q", faster, want)
		}
		want := events{
			"tool definition has changed read " + Digest([]byte(evil)) + " refused",
			"tool is new write " + Digest([]byte(more)) + " refused",
		}
		if !slices.Equal(slower, want) {
			t.Errorf("the slower replica told %q, want %q", slower, want)
		}
	})
}

// A first list that can't be stored counts: so the audit log has it, once.
func TestEventOfWhatIsStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, told := newEngine(), events{}
		p, err := Open(Options{Store: NewShared(e, nil, slog.New(slog.DiscardHandler)), Server: "files", Refuse: true, Told: told.told})
		if err != nil {
			t.Fatal(err)
		}
		e.between = func() { e.set(func(e *engine) { e.away = true }) }
		list(p, false, good)
		list(p, true, more)
		e.set(func(e *engine) { e.away = false })
		time.Sleep(time.Second)
		list(p, true, good, more)
		f := newFile("files").with([]found{{"read", formOf([]byte(good))}, {"write", formOf([]byte(more))}}, true)
		if want := (events{firstList + "  " + f.digest()}); !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}
