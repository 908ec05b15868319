package rules

import (
	"fmt"
	"strings"
	"testing"
)

func TestWriteFailed(t *testing.T) {
	const record = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"want 1\n"}
{"Action":"fail","Package":"p","Test":"TestA/one","Elapsed":2}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"fine\n"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
{"Action":"run","Package":"q","Test":"TestC"}
{"Action":"output","Package":"q","Test":"TestC","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"r","Elapsed":1}
{"Action":"pass","Package":"s"}
`
	const want = `p TestA/one failed after 2.0s
    want 1
q TestC did not end
    panic: test timed out
r failed after 1.0s
    
`
	var got strings.Builder
	if err := WriteFailed(&got, strings.NewReader(record)); err != nil || got.String() != want {
		t.Errorf("WriteFailed = %q, %v, want %q", got.String(), err, want)
	}
}

// Of a long output the beginning and the end are printed.
func TestWriteFailedLong(t *testing.T) {
	var record strings.Builder
	record.WriteString(`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN TestA\n"}` + "\n")
	for i := range 100 {
		fmt.Fprintf(&record, `{"Action":"output","Package":"p","Test":"TestA","Output":"line %d\n"}`+"\n", i)
	}
	record.WriteString(`{"Action":"fail","Package":"p","Test":"TestA"}`)
	var got strings.Builder
	if err := WriteFailed(&got, strings.NewReader(record.String())); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(got.String()), "\n    ")
	want := []string{"line 0", "line 11", "[…]", "line 70", "line 99"}
	for i, at := range []int{1, 12, 13, 14, 43} {
		if len(lines) != 44 || lines[at] != want[i] {
			t.Fatalf("%d lines, line %d is %q, want 44 and %q:\n%s", len(lines), at, lines[min(at, len(lines)-1)], want[i], got.String())
		}
	}
}
