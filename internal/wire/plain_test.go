package wire

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

// Only of params whose names every program reads alike, and only of the bytes that were
// parsed.
func TestPlain(t *testing.T) {
	for _, tt := range []struct {
		name, params string
		want         bool
	}{
		{"usual", `{"name":"x","arguments":{"Name":"y","name":"z"},"_meta":{"NAME":1}}`, true},
		{"one", `{"name":"x"}`, true},
		{"none", `{}`, true},
		{"another case", `{"name":"x","Name":"y"}`, false},
		{"another case, apart", `{"NAME":"x","b":1,"name":"y"}`, false},
		{"an escape", `{"name":"x","\u004eame":"y"}`, false},
		{"an escape alone", `{"n\u0061me":"x"}`, false},
		{"a letter that folds", `{"name":"x","taſk":"y"}`, false},
		{"many", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, false},
	} {
		m, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":`+tt.params+`}`), Options{UniqueParams: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Plain.Of(m.Params); got != tt.want {
			t.Errorf("%s: Of = %v, want %v", tt.name, got, tt.want)
		}
		if m.Plain.Of(bytes.Clone(m.Params)) || m.Plain.Of(m.Params[1:]) || m.Plain.Of(nil) || new(Plain).Of(nil) {
			t.Errorf("%s: Of = true of another text", tt.name)
		}
	}
	m, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"x"}}`), Options{})
	if err != nil || m.Plain.Of(m.Params) {
		t.Errorf("Of = true, %v, though duplicates were not looked for", err)
	}
}

// Get of what was parsed, and of any other text, is that of the text, however many members there are
// and how long they are.
func TestPlainGet(t *testing.T) {
	long := strings.Repeat("x", math.MaxUint16)
	for _, params := range []string{
		`{}`, `{"name":"x"}`, ` { "name" : "x" , "arguments" : { "name" : [ 1 ] } , "_meta":{} } `, `{"name":"Name","Name":"name"}`, `{"n\u0061me":"x","b":{}}`,
		`{"a":1,"b":2,"c":3,"name":4}`, `{"b":1,"Name":2}`, `{"a":1,"b":2,"c":3,"d":4,"name":5}`, `{"a":"` + long + `","name":1}`, `{"a":"` + long[:len(long)-len(`{"a":"","name":1}`)] + `","name":1}`,
	} {
		m, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":`+params+`}`), Options{UniqueParams: true})
		if err != nil {
			t.Fatal(err)
		}
		other := []byte(`{"name":"other","a":[]}`)
		for _, text := range [][]byte{m.Params, bytes.Clone(m.Params), other, nil} {
			for _, name := range []string{"name", "a", "_meta", "e", "other", ""} {
				if got, want := m.Plain.Get(text, name), Get(text, name); string(got) != string(want) {
					t.Errorf("Get(%.80s, %q) = %.80s, want %.80s", text, name, got, want)
				}
				if got, want := m.Plain.GetSeldom(text, name), Get(text, name); string(got) != string(want) {
					t.Errorf("GetSeldom(%.80s, %q) = %.80s, want %.80s", text, name, got, want)
				}
			}
			if !m.Plain.Knows(text) {
				continue
			}
			var got, want []string
			for k, v := range Members(text) {
				want = append(want, string(k)+string(v))
			}
			for i := range m.Plain.Len() {
				k, v := m.Plain.Member(text, i)
				got = append(got, string(k)+string(v))
			}
			if !slices.Equal(got, want) {
				t.Errorf("the members of %.80s are %.80q, want %.80q", text, got, want)
			}
		}
	}
}

// BenchmarkPlainGet gets the last member of small params: from their text, and as parsed.
func BenchmarkPlainGet(b *testing.B) {
	m, err := Parse([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"name":"read"}}`), Options{UniqueParams: true})
	if err != nil {
		b.Fatal(err)
	}
	for name, p := range map[string]Plain{"text": {}, "parsed": m.Plain} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p.Get(m.Params, "name") == nil {
					b.Fatal("no name")
				}
			}
		})
	}
}
