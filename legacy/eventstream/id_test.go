package eventstream

import (
	"math"
	"strings"
	"testing"
)

func TestEventID(t *testing.T) {
	for _, e := range []ID{{1, 1}, {12, 0}, {math.MaxUint64, math.MaxUint64}} {
		if got, ok := ParseID("inst", e.Text("inst")); !ok || got != e {
			t.Errorf("ParseID(%q) = %v, %v, want %v", e.Text("inst"), got, ok, e)
		}
	}
	for _, id := range []string{
		"", "1", "1.inst", "1.inst.", "1.inst.1", "1.inst.1.", "1.inst..1", "1.inst.1.1.1", "2.inst.1.1", "1.other.1.1", "1.inst.01.1", "1.inst.1.00",
		"1.inst.+1.1", "1.inst.1.-1", "1.inst.1_0.1", "1.inst.0x1.1", "1.inst.1.18446744073709551616", " 1.inst.1.1", "1.inst.1.1 ", "1.INST.1.1",
	} {
		if e, ok := ParseID("inst", id); ok {
			t.Errorf("ParseID(%q) = %v, want none", id, e)
		}
	}
}

// FuzzEventID reads event ids: what is taken for one is the one spelling of its event,
// and of no other instance. What is made is read again, and fits a header and a stream.
func FuzzEventID(f *testing.F) {
	f.Add("1.inst.1.1", uint64(1), uint64(1))
	f.Add("1.inst.007.+1", uint64(math.MaxUint64), uint64(0))
	f.Add("1.other.1.18446744073709551616", uint64(1), uint64(10))
	f.Fuzz(func(t *testing.T, id string, stream, event uint64) {
		if e, ok := ParseID("inst", id); ok && e.Text("inst") != id {
			t.Errorf("ParseID(%q) = %v, which is written %q", id, e, e.Text("inst"))
		}
		e := ID{stream, event}
		text := e.Text("inst")
		if back, ok := ParseID("inst", text); !ok || back != e {
			t.Errorf("ParseID(%q) = %v, %v, want %v", text, back, ok, e)
		}
		if _, ok := ParseID("ins", text); ok || strings.Trim(text, ".inst0123456789") != "" {
			t.Errorf("%q is read by another instance, or not plain", text)
		}
	})
}
