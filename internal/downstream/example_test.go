package downstream_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A response is JSON, unless something has to go before the result.
func ExampleResponse() {
	w := httptest.NewRecorder()
	res := downstream.NewResponse(w, 10*time.Second)
	defer res.Close()
	_ = res.Event("message", "", []byte(`{"jsonrpc":"2.0","method":"notifications/progress"}`))

	result := downstream.Message{Text: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)}
	if err := res.JSON(http.StatusOK, result); err == downstream.ErrStreaming {
		_ = res.Last(result.Bytes())
	}
	fmt.Println(w.Header().Get("Content-Type"))
	fmt.Print(w.Body)
	// Output:
	// text/event-stream
	// event: message
	// data: {"jsonrpc":"2.0","method":"notifications/progress"}
	//
	// event: message
	// data: {"jsonrpc":"2.0","id":1,"result":{}}
}

// What opens a stream runs in the handler; what writes the rest of it may outlive that.
func ExampleStreams_Serve() {
	var streams downstream.Streams // one for each server
	handler := func(w http.ResponseWriter, r *http.Request) {
		streams.Serve(w, r, 10*time.Second, func(ctx context.Context, res *downstream.Response) (rest func()) {
			_ = res.Comment() // some clients wait for the headers
			res.KeepAlive(15 * time.Second)
			return func() {
				_ = res.Event("message", "", []byte("hello"))
				_ = res.End()
			}
		})
	}
	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest(http.MethodGet, "/", nil))
	_ = streams.Wait(context.Background()) // before the server is closed
	fmt.Print(w.Body)
	// Output:
	// :
	//
	// event: message
	// data: hello
}

// A serving is what serves a request.
type serving struct {
	downstream.Call
	method string
}

func ExampleInFlight() {
	var requests downstream.InFlight[*serving] // of one client
	_, cancel := context.WithCancelCause(context.Background())
	call := &serving{Call: downstream.Call{ID: wire.NumberID(1), Cancel: cancel}, method: "tools/call"}
	_, err := requests.Enter(call, 80, 1000)
	fmt.Println("entered:", err)
	_, err = requests.Enter(&serving{Call: downstream.Call{ID: wire.NumberID(1)}}, 80, 1000)
	fmt.Println("again:", err)

	if r, ok := requests.Find(wire.NumberID(1)); ok { // for notifications/cancelled
		r.Cancel(nil)
		requests.Leave(r)
	}
	fmt.Println("left:", requests.Wait(context.Background()))
	// Output:
	// entered: <nil>
	// again: a request with the same id is in flight
	// left: <nil>
}
