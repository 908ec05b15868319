package back

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// taken is for a server that has taken the answer when the connection breaks.
const taken = -1

// No answer of a client is lost on its way to the server that waits for it: a broken connection
// and a server without room have it sent again, and a server that refuses it ends the call.
func TestM2L16AnswersArrive(t *testing.T) {
	for name, tt := range map[string]struct {
		meets []int // what the answer meets first: a status, 0 for a connection that breaks, or taken
		want  string
	}{
		"broken":      {meets: []int{0, 0}},
		"no room":     {meets: []int{http.StatusServiceUnavailable, http.StatusTooManyRequests}},
		"refused":     {meets: []int{http.StatusBadRequest}, want: `server "scripted" asked elicitation/create and did not accept the answer: HTTP 400`},
		"lost":        {meets: []int{http.StatusNotFound}, want: "was lost while it ran tools/call: HTTP 404"},
		"taken":       {meets: []int{taken}},
		"not a fault": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := legacytest.NewHTTPServer(t)
			p.Quiet, p.Session = true, "s-1"
			p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
				send := legacytest.StartSSE(w)
				if a, ok := p.Ask(r.Context(), send, "elicitation/create", `{"message":"who?"}`); ok {
					send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, said(string(a.Result)))
				}
			}
			var met atomic.Int64
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(text))
				if r.Method != http.MethodPost || bytes.Contains(text, []byte(`"method"`)) {
					p.ServeHTTP(w, r)
					return
				}
				switch i := int(met.Add(1)); {
				case i > len(tt.meets):
					p.ServeHTTP(w, r)
				case tt.meets[i-1] == taken:
					p.ServeHTTP(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				case tt.meets[i-1] == 0:
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(tt.meets[i-1])
				}
			}))
			t.Cleanup(front.Close)
			b := newTestBack(t, Options{Options: upstream.Options{URL: front.URL}})
			answer := `{"action":"accept","content":{"me":"a"}}`
			x := &backtest.Client{Answer: func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
				return mcp.InputResponse{Result: []byte(answer)}, nil
			}}
			got, err := body(b.Serve(t.Context(), askable("a"), x))
			switch {
			case tt.want == "" && (err != nil || got != said(answer)):
				t.Errorf("got %s, %v", got, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %s, %v, want an error with %q", got, err, tt.want)
			}
			if n := int(met.Load()); name == "taken" {
				return // the call may end before the answer is sent again
			} else if tt.want == "" && n != len(tt.meets)+1 || tt.want != "" && n != 1 {
				t.Errorf("the answer was sent %d times", n)
			}
		})
	}
}
