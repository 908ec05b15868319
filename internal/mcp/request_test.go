package mcp

import (
	"testing"
	"unsafe"
)

// A Request and the eight bytes that Go's allocator puts before what is larger than 512 bytes fit
// into 640. One that does not takes 704, and a call through a group has two.
func TestRequestIsSmall(t *testing.T) {
	if got := unsafe.Sizeof(Request{}); got > 640-8 {
		t.Errorf("a Request has %d bytes, want %d at most", got, 640-8)
	}
}
