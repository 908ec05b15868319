package link

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// keeper keeps what a server sends.
type keeper struct {
	nobody
	texts []string // by their own memory
	kept  []wire.Message
}

func (k *keeper) Receive(_ context.Context, m *wire.Message, _ *upstream.Call) {
	k.texts = append(k.texts, string(m.Text))
	k.kept = append(k.kept, *m)
}

// What came in a call's stream is the session's for keeps: a question can be with
// its client when the stream has ended, and its bytes must not be lent to another
// call then, whose answer the client would see.
func TestTextOfAStreamOutlivesIt(t *testing.T) {
	question := `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"q":"` + strings.Repeat("q", 6<<10) + `"}}` // most of a buffer, so that it goes without a copy
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n", question)
	}))
	defer server.Close()
	o := testOptions(server.URL)
	e := NewEndpoint(o)
	defer e.Close()
	var k keeper
	l := New(o, &k)
	l.OverHTTP(e)
	defer l.Close(t.Context())
	if _, err := l.Request(t.Context(), spec.MethodPing, nil); err != nil {
		t.Fatal(err)
	}
	for range 8 { // one of them would be the stream's
		b := transport.GetBuffer(0)
		copy(b[:cap(b)], strings.Repeat("x", cap(b)))
	}
	if len(k.kept) != 1 || k.texts[0] != question || string(k.kept[0].Text) != question {
		t.Errorf("kept %d messages, of which the first is not the question as it came", len(k.kept))
	}
}
