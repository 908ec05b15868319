package rules

import (
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
