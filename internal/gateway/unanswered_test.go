package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/replicas/replicastest"
)

// A replica that breaks off has the log say so once, however many requests it leaves without a
// response.
func TestUnansweredForwardsAreLoggedOnce(t *testing.T) {
	broker := replicastest.New()
	r := newReplica(t, broker, newPeer(t), nil)
	breaks := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(breaks.Close)
	broker.Join(t, "ZZZZZZZZ", breaks.Listener.Addr().String())
	eventually(t, func() bool { return len(r.peers.View().Members) == 2 })
	const callBody = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}`
	for range 5 {
		if a := r.send(t, http.MethodPost, callBody, sessionHeaders("1ZZZZZZZZ-x")); a.status != http.StatusBadGateway {
			t.Errorf("= %+v, want 502", a)
		}
	}
	if n := strings.Count(r.logs.String(), "forwarded request without a response"); n != 1 {
		t.Errorf("%d log lines, want 1:\n%s", n, r.logs)
	}
}
