package requeststate

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"
)

// A task's name is good for whom it was sealed, in any instance that has the key, and says nothing.
func TestT21NamesOfTasks(t *testing.T) {
	const a, b = "the key of last month", "the key of this month"
	s, _ := NewSealerOf("AAAAAAAA", a)
	for _, want := range []Task{
		{ID: "t/1", Tool: "x", Expires: time.Unix(1_800_000_000, 0)},
		{ID: "", Tool: ""},
		{ID: strings.Repeat("i\x00", 200), Tool: "é"},
	} {
		name := s.SealTask(want, "ada")
		if name == s.SealTask(want, "ada") || !strings.HasPrefix(name, "1.AAAAAAAA.") || want.ID != "" && strings.Contains(name, want.ID) {
			t.Errorf("the name %q is met again, or tells what it names", name)
		}
		for who, o := range map[string]*Sealer{"the same": s, "another instance": of("BBBBBBBB", b, a)} {
			if got, err := o.OpenTask(name, "ada"); err != nil || got != want {
				t.Errorf("%s opens %+v, %v, want %+v", who, got, err, want)
			}
		}
		for who, c := range map[string]struct {
			o       *Sealer
			text    string
			binding string
			want    error
		}{
			"another principal":      {s, name, "bob", ErrInvalid},
			"mangled":                {s, name[:len(name)-4] + "AAAA", "ada", ErrInvalid},
			"another instance's":     {s, strings.Replace(name, "AAAAAAAA", "BBBBBBBB", 1), "ada", ErrInvalid},
			"the key is gone":        {of("BBBBBBBB", b), name, "ada", ErrInvalid},
			"there never was a key":  {of("BBBBBBBB"), name, "ada", ErrOtherInstance},
			"a requestState":         {s, s.Seal(State{Binding: sha256.Sum256([]byte("ada"))}), "ada", ErrInvalid},
			"the id of a table":      {s, s.NewHandle(), "ada", ErrInvalid},
			"not a name of a task":   {s, "t/1", "ada", ErrInvalid},
			"an empty text, no name": {s, "", "ada", ErrInvalid},
		} {
			if got, err := c.o.OpenTask(c.text, c.binding); err != c.want {
				t.Errorf("%s: %+v, %v, want %v", who, got, err, c.want)
			}
		}
		if _, err := s.Open(name); !errors.Is(err, ErrInvalid) {
			t.Errorf("a task's name opens as a requestState: %v", err)
		}
	}
}

func of(instance string, keys ...string) *Sealer {
	s, err := NewSealerOf(instance, keys...)
	if err != nil {
		panic(err)
	}
	return s
}
