package wire

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"
)

// naiveEnd returns the offset after the string whose opening quote is at open, or -1 if
// it has no end, and whether it has a control character or a byte outside ASCII.
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
	return -1, odd
}

// firstBadEscape returns the offset of the first invalid escape from i on, or len(data)
// if there is none.
func firstBadEscape(data []byte, i int) int {
	for i < len(data) {
		if data[i] != '\\' {
			i++
			continue
		}
		next := escapeEnd(data, i)
		if next < 0 {
			return i
		}
		i = next
	}
	return len(data)
}

func checkEnd(t *testing.T, data []byte, open int) {
	t.Helper()
	wantEnd, wantOdd := naiveEnd(data, open)
	end, odd := stringEnd(data, open+1)
	switch stands := wantEnd >= 0 && firstBadEscape(data[:wantEnd-1], open+1) == wantEnd-1; {
	case !stands && end >= 0:
		t.Errorf("stringEnd(%q, %d) = %d, want -1", data, open+1, end)
	case stands && (end != wantEnd || odd != wantOdd):
		t.Errorf("stringEnd(%q, %d) = %d, %v, want %d, %v", data, open+1, end, odd, wantEnd, wantOdd)
	}
	if wantEnd < 0 {
		wantEnd = len(data)
	}
	if end := skipString(data, open); end != wantEnd {
		t.Errorf("skipString(%q, %d) = %d, want %d", data, open, end, wantEnd)
	}
}

// The end of a string, escapes and odd bytes are found at every offset of a stride.
func TestStringEnd(t *testing.T) {
	for _, filler := range []string{"x", `\"`, `x\"`, `\\`, `\\\"`, "é", `abcdef\n`, `\u00e9`, `y\uD83D`} {
		for _, special := range []string{`"`, `\"`, `\\"`, `\\\"`, "\n", "\\\n", "\x1f", "\x7f", "\x80", "é", `\`, `\\`, `\u00`, `\u"`, ""} {
			for at := range 150 {
				inside := (strings.Repeat(filler, at) + "\\\\")[:at/len(filler)*len(filler)] + special + strings.Repeat(filler, 70)
				checkEnd(t, []byte(`"`+inside+`"`), 0)
				checkEnd(t, []byte(`\\"`+inside+`",`), 2)
				checkEnd(t, []byte(`"`+inside), 0)
			}
		}
	}
}

// stringOf returns a string of more than 64 bytes without its end, with a few bytes and
// escapes anywhere in it.
func stringOf(rng *rand.Rand, parts []string) []byte {
	data := bytes.Repeat([]byte{'x'}, rng.IntN(300)+80)
	for range rng.IntN(9) {
		copy(data[1+rng.IntN(len(data)-1):], parts[rng.IntN(len(parts))])
	}
	data[0] = '"'
	return data
}

// skipToQuote and skipToQuoteBytes stop at or before the end.
func TestSkipToQuote(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		data := stringOf(rng, []string{`"`, `\`, `\"`, `\\`, "\n", "\x1f", " ", "\x7f", "\x80", "\xff"})
		if data[1] = 'x'; rng.IntN(2) == 0 {
			data[1] = '\\'
		}
		for name, f := range map[string]func([]byte, int) int{"skipToQuote": skipToQuote, "skipToQuoteBytes": skipToQuoteBytes} {
			if end, _ := naiveEnd(data, 0); end >= 0 && f(data, 2) >= end {
				t.Fatalf("%s(%q) = %d; the end is %d", name, data, f(data, 2), end)
			}
		}
	}
}

// skipValid and skipValidBytes stop at or before the string's end and the first invalid
// escape, never within an escape, and report odd bytes. skipValid stops nowhere else,
// unless fewer than 64 bytes are left.
func TestSkipValid(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 40_000 {
		data := stringOf(rng, []string{`"`, `\`, `\"`, `\\`, `\n`, `\r`, `\q`, `\N`, `\u00e9`, `\uABCDEF`, `\u12g4`, `\/`, "\n", "é", "\x7f", "\x80"})
		last := firstBadEscape(data, 1)
		if end, _ := naiveEnd(data, 0); end >= 0 {
			last = min(last, end-1)
		}
		for name, f := range map[string]func([]byte, int) (int, bool){"skipValid": skipValid, "skipValidBytes": skipValidBytes} {
			next, odd := f(data, 1)
			passed := data[1:max(next, 1)]
			if next < 1 || next > last || firstBadEscape(passed, 0) != len(passed) || !odd && !valid(passed) {
				t.Fatalf("%s(%q) = %d, %v; the last is %d", name, data, next, odd, last)
			}
			if name == "skipValid" && cpu.X86.HasAVX2 && next+stride < last {
				t.Fatalf("skipValid(%q) = %d; the last is %d", data, next, last)
			}
		}
	}
}

// Long strings, whose escapes are rare, of one kind, or mixed, are skipped to their end, or
// to the one byte in them that is wrong.
func TestSkipValidLongStrings(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	kinds := [][]string{{`\n`}, {`\"`, `\n`, `\r`, `\t`, `\b`, `\f`, `\/`}, {`\\`}, {`\u00e9`}, {`\n`, `\\`}, {`\n`, `\\`, `\u00e9`, `\"`}}
	for range 20_000 {
		kind, gap := kinds[rng.IntN(len(kinds))], 1<<rng.IntN(9)
		data := []byte{'"'}
		for size := rng.IntN(1500); len(data) < size; {
			data = append(data, kind[rng.IntN(len(kind))]...)
			data = append(data, strings.Repeat("x", rng.IntN(gap))...)
		}
		data = append(data, []string{`"`, `\q`, `\u00g0`, "\n", "é"}[rng.IntN(5)]...)
		data = append(data, strings.Repeat("y", 100)...)
		data = append(data, '"')
		last := firstBadEscape(data, 1)
		if end, _ := naiveEnd(data, 0); end >= 0 {
			last = min(last, end-1)
		}
		next, odd := skipValid(data, 1)
		passed := data[1:max(next, 1)]
		if next < 1 || next > last || firstBadEscape(passed, 0) != len(passed) || !odd && !valid(passed) {
			t.Fatalf("skipValid(%q) = %d, %v; the last is %d", data, next, odd, last)
		}
		if cpu.X86.HasAVX2 && next+stride < last {
			t.Fatalf("skipValid(%q) = %d; the last is %d", data, next, last)
		}
	}
}

func FuzzStringEnd(f *testing.F) {
	f.Add([]byte(`"`+strings.Repeat(`path=\"x\" \\`, 30)+`"`), 0)
	f.Add([]byte(`\\"`+strings.Repeat(`\\\"é`, 30)), 2)
	f.Fuzz(func(t *testing.T, data []byte, open int) {
		if open >= 0 && open < len(data) && data[open] == '"' {
			checkEnd(t, data, open)
		}
	})
}

// Escapes in long strings are checked at every offset as they are byte by byte.
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

// FuzzString compares reading a string in strides with reading it byte by byte.
func FuzzString(f *testing.F) {
	f.Add([]byte(`"` + strings.Repeat(`path=\"x\" \\ \u00e9`, 9) + `"`))
	f.Add([]byte(`"` + strings.Repeat(`abc\\\\é`, 9) + `\q"`))
	f.Add([]byte("\"\\u12\"x\n\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		sameAsStrict(t, append([]byte{'"'}, data...))
	})
}

// BenchmarkString reads strings of a megabyte of several kinds.
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

// Says and GetSeldom agree with their slower relatives, however a name is written.
func TestSaysAndGetSeldom(t *testing.T) {
	for _, text := range []string{``, `3`, `"a"`, `"\u0061"`, `"a\n"`, `"é"`, `"\u00e9"`, `{}`, `null`} {
		for _, s := range []string{"", "a", "a\n", "é", "3", "{}"} {
			if want := strings.HasPrefix(text, `"`) && Unquote([]byte(text)) == s; Says([]byte(text), s) != want {
				t.Errorf("Says(%s, %q) = %v", text, s, !want)
			}
		}
	}
	for _, text := range []string{``, `{}`, `{"state":1}`, `{"\u0073tate":2}`, `{"a":"state"}`, `{"a":{"state":3}}`, `{"a\\":"x","states":4}`,
		`{"a/state":5}`, `{"a\/state":6}`, `{"b/state":7}`, `{"b/state":8,"\u0061/state":9}`} {
		for _, name := range []string{"state", "a/state", "/state", "state/"} {
			if got, want := GetSeldom([]byte(text), name), Get([]byte(text), name); string(got) != string(want) {
				t.Errorf("GetSeldom(%s, %q) = %s, want %s", text, name, got, want)
			}
		}
	}
}
