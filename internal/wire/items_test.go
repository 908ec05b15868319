package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The name of an element is told only if all programs read the same one.
func TestNamedElements(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`[{"name":"a"},{"x":{"name":"b"},"name":"c"}]`, `{"name":"a"}="a" {"x":{"name":"b"},"name":"c"}="c"`},
		{` [ { "name" : "a" , "x" : [ ] } , { } , 7 , "s" , [ {"name":"b"} ] ] `, `{ "name" : "a" , "x" : [ ] }="a" { }= 7= "s"= [ {"name":"b"} ]=`},
		{`[{"name":"a","name":"b"},{"name":"a","n\u0061me":"b"},{"name":"a","Name":"b"},{"name":"a","N\u0041ME":"b"}]`,
			`{"name":"a","name":"b"}= {"name":"a","n\u0061me":"b"}= {"name":"a","Name":"b"}= {"name":"a","N\u0041ME":"b"}=`},
		{`[{"n\u0061me":7},{"Name":"a"},{"names":"a","nam":1,"näme":2}]`, `{"n\u0061me":7}=7 {"Name":"a"}= {"names":"a","nam":1,"näme":2}=`},
		{`[]`, ``}, {` [ ] `, ``}, {`{}`, ``}, {`null`, ``}, {``, ``},
	} {
		var got []string
		for e, v := range NamedElements([]byte(tt.text), "name") {
			got = append(got, fmt.Sprintf("%s=%s", e, v))
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("NamedElements(%s) = %s, want %s", tt.text, text, tt.want)
		}
	}
	for range NamedElements([]byte(`[1,2]`), "name") {
		break
	}
	// The Kelvin sign is a K of another script, and is longer than it.
	for e, v := range NamedElements([]byte(`[{"kind":1,"\u212aind":2}]`), "kind") {
		if v != nil {
			t.Errorf("%s has %s", e, v)
		}
	}
}

// Its elements are those of Elements, and their values those of Get where there is one.
func FuzzNamedElements(f *testing.F) {
	for _, text := range []string{`[{"name":"a"}, {"name":{"name":1}} ,[],"x",{"NAME":1}]`, `[[{"name":1}]]`, `{"name":1}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if Check(text, 0) != nil {
			return
		}
		want := slices.Collect(Elements(text))
		i := 0
		for e, v := range NamedElements(text, "name") {
			if i >= len(want) || !bytes.Equal(e, want[i]) {
				t.Fatalf("element %d is %s", i, e)
			}
			if v != nil && !bytes.Equal(v, Get(e, "name")) {
				t.Fatalf("the name of %s is %s", e, v)
			}
			i++
		}
		if i != len(want) {
			t.Fatalf("%d elements of %d", i, len(want))
		}
	})
}

// BenchmarkNamedElements reads the names of a long list.
func BenchmarkNamedElements(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			item := `{"name":"read_file","description":"Reads a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}},`
			text := []byte("[" + strings.TrimSuffix(strings.Repeat(item, n), ",") + "]")
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				for _, v := range NamedElements(text, "name") {
					if v == nil {
						b.Fatal("no name")
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item")
		})
	}
}
