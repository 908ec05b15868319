package member

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// FuzzRecords reads what anybody may have written at the engine. What is taken for a record or
// a claim is written and read again as the same.
func FuzzRecords(f *testing.F) {
	f.Add(`{"addr":"10.0.0.1:7","version":"v1","beat":3,"left":true}`, "a 1")
	f.Add(`{"addr":"10.0.0.1:7","beat":3,"quiet":9223372036854775807}`, "a 1 0")
	f.Add(`{"addr":"","beat":-1}`, "  a  18446744073709551615 x")
	f.Add(`{"addr":"x","addr":"y","revision":1e3,"later":{"a":[]}}`, "a\u00a0007")
	f.Fuzz(func(t *testing.T, text, value string) {
		if r, rec, err := decode("i", []byte(text)); err == nil {
			again, err := encode(r, rec.Beat, rec.Left, time.Duration(rec.Quiet)*time.Millisecond)
			if err != nil {
				t.Fatalf("encode(decode(%q)): %v", text, err)
			}
			r2, rec2, err := decode("i", again)
			if err != nil || r2 != r || rec2 != rec || r.Addr == replicas.Address("") {
				t.Errorf("%q is read as %+v, which is written %s, which is %+v (%v)", text, r, again, r2, err)
			}
		}
		c := parse(value)
		if c.holder == "" && c.epoch != 0 || c.holder != strings.TrimSpace(c.holder) {
			t.Errorf("parse(%q) = %+v", value, c)
		}
		if back := parse(c.value()); back != c {
			t.Errorf("parse(%q) = %+v, which is written %q, which is %+v", value, c, c.value(), back)
		}
	})
}
