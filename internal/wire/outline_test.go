package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// flat lists the members that Members yields, for comparison.
func flat(text []byte, members func(func(Key, []byte) bool)) (all []string) {
	members(func(k Key, v []byte) bool {
		all = append(all, string(k)+":"+string(v))
		return true
	})
	return all
}

// sameAsWalk fails unless the outline of a message has the members that Members yields.
func sameAsWalk(t *testing.T, text []byte) {
	t.Helper()
	m, err := Parse(text, Options{})
	if err != nil {
		return
	}
	if want := Get(m.Params, "_meta"); !bytes.Equal(m.Meta, want) {
		t.Errorf("_meta of %q is %q, want %q", m.Params, m.Meta, want)
	}
	for _, body := range [][]byte{m.Params, m.Result, bytes.Clone(m.Result), nil} {
		if got, want := flat(body, m.Outline.Members(body)), flat(body, Members(body)); !slices.Equal(got, want) {
			t.Errorf("outline of %q has %q, want %q", body, got, want)
		}
		if hasNull(body) && !m.Outline.MayHaveNulls(body) {
			t.Errorf("outline of %q knows no null", body)
		}
	}
}

// hasNull finds nulls in another way than the package does.
func hasNull(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		switch tok, err := d.Token(); {
		case err != nil:
			return false
		case tok == nil:
			return true
		}
	}
}

func TestOutlineIsWhatAWalkFinds(t *testing.T) {
	many := `{"k0":0`
	for i := range 2 * maxOutline {
		many += fmt.Sprintf(`,"m%d":[%d]`, i, i)
	}
	for _, tt := range []struct{ name, body string }{
		{"empty", `{}`},
		{"one", `{"a":1}`},
		{"space everywhere", ` { "a" : 1 , "b" : [ 1 ] } `},
		{"nested names", `{"result":{"params":{"result":{}}},"params":{"a":{"b":1}}}`},
		{"null inside", `{"a":[{"b":null}],"c":"x"}`},
		{"null in a string", `{"a":"null"}`},
		{"escaped names", `{"\u0061":"\"}","b\\":2}`},
		{"too many", many + `}`},
		{"an array", `[{"a":1},{"b":2}]`},
		{"a null", `null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, frame := range []string{
				`{"jsonrpc":"2.0","id":1,"result":%s}`,
				`{"result": %s ,"id":1,"other":{"z":null},"jsonrpc":"2.0"}`,
				`{"jsonrpc":"2.0","id":1,"\u0072esult":%s,"params":{"p":null}}`,
				`{"jsonrpc":"2.0","id":1,"params":{"p":null},"result":%s}`,
			} {
				text := fmt.Appendf(nil, frame, tt.body)
				sameAsWalk(t, text)
				sameAsWalk(t, append(bytes.Repeat([]byte(" "), minOutline), text...)) // has an outline
			}
		})
	}
}

func TestOutlineKnowsThatThereIsNoNull(t *testing.T) {
	m, err := Parse([]byte(`{"a":null,"jsonrpc":"2.0","id":1,"result":{"text":"null"},"b":"`+strings.Repeat("x", minOutline)+`"}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Outline.MayHaveNulls(m.Result) {
		t.Error("MayHaveNulls = true for a null in a string and one outside of the result")
	}
	if !m.Outline.MayHaveNulls([]byte(`{"text":"null"}`)) {
		t.Error("MayHaveNulls = false for a text that was not parsed")
	}
}

// An outline must not be applied to another text: code that has edited a result still has
// the outline of the original.
func TestOutlineStandsForItsTextAlone(t *testing.T) {
	m, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":1,"b":2},"x":"`+strings.Repeat("x", minOutline)+`"}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	edited := AppendEdited(nil, m.Result, Edit{"a", []byte(`"xx"`)}, Edit{"b", nil})
	if got := string(m.Outline.Get(edited, "a")); got != `"xx"` {
		t.Errorf("Get(edited, a) = %s, want \"xx\"", got)
	}
	if got := m.Outline.Get(edited, "b"); got != nil {
		t.Errorf("Get(edited, b) = %s, want nothing", got)
	}
}

func TestString(t *testing.T) {
	pad := strings.Repeat("a", 19)
	for _, tt := range []struct {
		name, text string
		ok         bool
	}{
		{"plain", `"` + pad + `"`, true},
		{"escaped quotes", `"` + pad + `\"` + pad + `\\\""`, true},
		{"backslash at the end", `"` + pad + `\\"`, true},
		{"every escape", `"\"\\\/\b\f\n\r\t\u00e9\uD83D` + pad + `"`, true},
		{"unknown escape", `"\q` + pad + `"`, false},
		{"unknown escape after others", `"` + pad + `\\\n` + pad + `\\\\\q"`, false},
		{"escape in capitals", `"` + pad + `\N"`, false},
		{"short unicode escape", `"\u12"`, false},
		{"unicode escape of no digits", `"\u12g4` + pad + `"`, false},
		{"non-ASCII", `"` + pad + `é世界🎉` + pad + `"`, true},
		{"line feed", "\"" + pad + "\n\"", false},
		{"line feed in the first bytes", "\"\n" + pad + "\"", false},
		{"escaped line feed", "\"\\\n" + pad + "\"", false},
		{"line feed after the last word", "\"" + pad + pad + "\x1f\"", false},
		{"NUL", "\"" + pad + "\x00" + pad + "\"", false},
		{"invalid UTF-8", "\"" + pad + "\xff" + pad + "\"", false},
		{"overlong UTF-8", "\"\xc0\x80" + pad + "\"", false},
		{"UTF-8 surrogate", "\"\xed\xa0\x80" + pad + "\"", false},
		{"cut in a rune", "\"" + pad + "\xe4\xb8\"", false},
		{"open", `"` + pad, false},
		{"open after an escaped quote", `"` + pad + `\"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for shift := range 9 { // every position in a word
				text := `{"jsonrpc":"2.0","id":1,"result":[` + strings.Repeat(" ", shift) + tt.text + `,"` + pad + `"]}`
				if !strings.HasPrefix(tt.name, "open") {
					text += strings.Repeat(" ", shift)
				} else {
					text = text[:strings.Index(text, tt.text)+len(tt.text)]
				}
				if _, err := Parse([]byte(text), Options{}); (err == nil) != tt.ok {
					t.Errorf("Parse(%q) = %v, want ok = %v", text, err, tt.ok)
				}
			}
		})
	}
}

func TestParseAllocatesForTheIDAlone(t *testing.T) {
	text := resultOf(100)
	if n := testing.AllocsPerRun(100, func() { _, _ = Parse(text, Options{}) }); n > 1 {
		t.Errorf("Parse allocates %v times, want once", n)
	}
}

// FuzzParse compares the outline with Members.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a\n\"b\""}],"x":null}}`,
		`{"jsonrpc":"2.0","id":"x","params":{"_meta":{},"a":[1,{"b":null}]},"method":"m","result":1}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"\xff\\q\":\"\\u00\"}}",
		`{"jsonrpc":"2.0","id":1,"result":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sameAsWalk(t, append(bytes.Repeat([]byte(" "), minOutline), data...))
	})
}

// An object that was made has the members that a walk finds, and none if there are too many.
func TestOutlineOf(t *testing.T) {
	many := "{"
	for i := range maxOutline {
		many += fmt.Sprintf(`"m%d":[%d],`, i, i)
	}
	for _, body := range []string{`{}`, ` { "a" : 1 , "b" : [ null ] } `, `{"\u0061":"\"}","b\\":{"b":2}}`, many + `"x":1}`, many[:len(many)-1] + "}", `[1]`, ``} {
		text := []byte(body)
		o := OutlineOf(text)
		if (o == nil) != (body == many+`"x":1}`) {
			t.Errorf("OutlineOf(%.60s) = %v", body, o)
		}
		want := ""
		for k, v := range Members(text) {
			want += string(k) + string(v)
			if got := o.Get(text, k.String()); string(got) != string(v) {
				t.Errorf("%s of %.60s = %s, want %s", k, body, got, v)
			}
		}
		got := ""
		for k, v := range o.Members(text) {
			got += string(k) + string(v)
		}
		if got != want {
			t.Errorf("the members of %.60s are %.80s, want %.80s", body, got, want)
		}
		if o != nil && o.MayHaveNulls(text) != strings.Contains(body, "null") && len(body) > 0 {
			t.Errorf("MayHaveNulls(%.60s) = %v", body, o.MayHaveNulls(text))
		}
	}
}
