package requeststate

import (
	"net/textproto"
	"testing"
)

// A handle names its instance, is unlike all others, and fits where a header has it.
func TestT11Handles(t *testing.T) {
	s, _ := NewSealerOf("AAAAAAAA")
	other, _ := NewSealerOf("BBBBBBBB")
	seen := make(map[string]bool)
	for range 1000 {
		h := s.NewHandle()
		if seen[h] || len(h) > 64 || textproto.TrimString(h) != h {
			t.Fatalf("handle %q: %d characters, met before: %v", h, len(h), seen[h])
		}
		seen[h] = true
	}
	h := s.NewHandle()
	for text, want := range map[string]error{
		h: nil, other.NewHandle(): ErrOtherInstance,
		"": ErrInvalid, h[:len(h)-1]: ErrInvalid, h + "A": ErrInvalid, "2" + h[1:]: ErrInvalid, h[:len(h)-1] + "!": ErrInvalid,
		"1.aaaaaaaa" + h[10:]: ErrInvalid, "1.AAAA" + h[10:]: ErrInvalid, s.Seal(State{}): ErrInvalid, "a-task-of-the-server's": ErrInvalid,
	} {
		if got := s.CheckHandle(text); got != want {
			t.Errorf("CheckHandle(%q) = %v, want %v", text, got, want)
		}
	}
}
