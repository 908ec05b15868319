package back

import (
	"io"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// What came in a call's stream is the session's for keeps: a question can be with
// its client when the stream has ended, and its bytes must not be lent to another
// call then, whose answer the client would see.
func TestTextOfAStreamOutlivesIt(t *testing.T) {
	data := strings.Repeat("q", 6<<10) // most of a buffer, so that it goes without a copy
	st := &replyStream{body: io.NopCloser(strings.NewReader("data: " + data + "\n\n")), buf: transport.GetBuffer(0)}
	st.rd = sse.NewReader(st.body, sse.ReaderOptions{MaxEventSize: 1 << 20, Buffer: st.buf})
	if _, err := st.rd.Next(); err != nil {
		t.Fatal(err)
	}
	text := st.take()
	st.close()
	for range 8 { // one of them would be the stream's
		b := transport.GetBuffer(0)
		copy(b[:cap(b)], strings.Repeat("x", cap(b)))
	}
	if string(text) != data {
		t.Errorf("the text became %.40q…, want it as it came", text)
	}
}
