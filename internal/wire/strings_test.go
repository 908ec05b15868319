package wire

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// naiveEnd is stringEnd, byte by byte.
func naiveEnd(data []byte, open int) (end int, odd bool) {
	for i := open + 1; i < len(data); i++ {
		switch b := data[i]; {
		case b == '"':
			return i + 1, odd
		case b == '\\' && i+1 < len(data):
			i++
			odd = odd || data[i] < 0x20 || data[i] >= 0x80
		case b < 0x20 || b >= 0x80:
			odd = true
		}
	}
	return -1, false
}

func checkEnd(t *testing.T, data []byte, open int) {
	t.Helper()
	wantEnd, wantOdd := naiveEnd(data, open)
	if end, odd := stringEnd(data, open); end != wantEnd || odd != wantOdd {
		t.Errorf("stringEnd(%q, %d) = %d, %v, want %d, %v", data, open, end, odd, wantEnd, wantOdd)
	}
	if wantEnd < 0 {
		wantEnd = len(data)
	}
	if end := skipString(data, open); end != wantEnd {
		t.Errorf("skipString(%q, %d) = %d, want %d", data, open, end, wantEnd)
	}
}

// What ends a string, or makes it odd, is found wherever it stands in a stretch,
// beside whatever else.
func TestStringEnd(t *testing.T) {
	for _, filler := range []string{"x", `\"`, `x\"`, `\\`, `\\\"`, "é", `abcdef\n`} {
		for _, special := range []string{`"`, `\"`, `\\"`, `\\\"`, "\n", "\\\n", "\x1f", "\x7f", "\x80", "é", `\`, `\\`, ""} {
			for at := range 150 {
				inside := (strings.Repeat(filler, at) + "\\\\")[:at/len(filler)*len(filler)] + special + strings.Repeat(filler, 70)
				checkEnd(t, []byte(`"`+inside+`"`), 0)
				checkEnd(t, []byte(`\\"`+inside+`",`), 2)
				checkEnd(t, []byte(`"`+inside), 0)
			}
		}
	}
}

// skim and skimBytes stop at or before the end, and passed over nothing odd
// without a word.
func TestSkim(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const letters = "abcdefgh\"\\\\\"\n\x1f\x20\x7f\x80\xff"
	for range 20_000 {
		data := bytes.Repeat([]byte{'x'}, rng.IntN(300)+64)
		data[0] = '"'
		for range rng.IntN(6) {
			data[2+rng.IntN(len(data)-2)] = letters[rng.IntN(len(letters))]
		}
		if data[1] = 'x'; rng.IntN(2) == 0 {
			data[1] = '\\'
		}
		for name, f := range map[string]func([]byte, int) (int, bool){
			"skim":      skim,
			"skimBytes": skimBytes,
		} {
			next, odd := f(data, 2)
			end, _ := naiveEnd(data, 0)
			passed := data[2:next]
			if end >= 0 && next >= end || odd != (control(passed) >= 0 || !isASCII(passed)) {
				t.Fatalf("%s(%q) = %d, %v; the end is %d", name, data, next, odd, end)
			}
		}
	}
}

func isASCII(b []byte) bool { return bytes.IndexFunc(b, func(r rune) bool { return r >= 0x80 }) < 0 }

func FuzzStringEnd(f *testing.F) {
	f.Add([]byte(`"`+strings.Repeat(`path=\"x\" \\`, 30)+`"`), 0)
	f.Add([]byte(`\\"`+strings.Repeat(`\\\"é`, 30)), 2)
	f.Fuzz(func(t *testing.T, data []byte, open int) {
		if open >= 0 && open < len(data) && data[open] == '"' {
			checkEnd(t, data, open)
		}
	})
}

// Escapes in long strings are judged as one by one, wherever they stand.
func TestLongStringsOfEscapes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	good := []string{`\n`, `\"`, `\\`, `\\\\`, `\/`, `\u00e9`, "x", "C:", "é", strings.Repeat("y", 70)}
	bad := []string{`\q`, `\N`, `\u12`, `\u00g9`, `\u`, "\\\n", `\\\q`, `\\\\\2`, "\\é"}
	for range 20_000 {
		var text strings.Builder
		text.WriteByte('"')
		for range rng.IntN(60) {
			text.WriteString(good[rng.IntN(len(good))])
		}
		if rng.IntN(2) == 0 {
			text.WriteString(bad[rng.IntN(len(bad))])
		}
		for range rng.IntN(60) {
			text.WriteString(good[rng.IntN(len(good))])
		}
		sameAsStrict(t, []byte(text.String()+`"`))
	}
}

func sameAsStrict(t *testing.T, data []byte) {
	t.Helper()
	fast, slow := checker{data: data}, checker{data: data}
	got, want := fast.str(0), slow.strictStr(0)
	if (fast.err == nil) != (slow.err == nil) || got != want {
		t.Errorf("str(%q) = %d, %v, want %d, %v", data, got, fast.err, want, slow.err)
	}
}

// FuzzString holds the reading of strings in stretches against that byte by byte.
func FuzzString(f *testing.F) {
	f.Add([]byte(`"` + strings.Repeat(`path=\"x\" \\ \u00e9`, 9) + `"`))
	f.Add([]byte(`"` + strings.Repeat(`abc\\\\é`, 9) + `\q"`))
	f.Add([]byte("\"\\u12\"x\n\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		sameAsStrict(t, append([]byte{'"'}, data...))
	})
}

// BenchmarkString is a text of a megabyte of each kind.
func BenchmarkString(b *testing.B) {
	for _, kind := range []struct{ name, part string }{
		{"plain", "lorem ipsum dolor sit amet, "},
		{"quotes", `took=12ms path=\"/srv/notes/today.md\" INFO\n`},
		{"backslashes", `C:\\Users\\ada\\notes\\`},
		{"unicode escapes", `Za\u017c\u00f3\u0142\u0107 <b>\u003c `},
		{"utf8", "Zażółć gęślą jaźń "},
	} {
		text := []byte(`"` + strings.Repeat(kind.part, (1<<20)/len(kind.part)) + `"`)
		b.Run(kind.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				c := checker{data: text}
				if c.str(0) != len(text) {
					b.Fatal(c.err)
				}
			}
		})
	}
}
