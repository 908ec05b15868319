package forward

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// lacking returns two replicas, the second of which tells that it has a server that the first has
// not.
func lacking(t *testing.T) (edge, having *replica) {
	t.Helper()
	_, all := newReplicas(t, 2, func(r *replicas.Replica, _ *ServerOptions) {
		if r.Instance == "BBBBBBBB" {
			r.Servers = replicas.ServersOf(slices.Values([]string{"weather"}))
		}
	})
	return all[0], all[1]
}

func (r *replica) absent(t *testing.T, method, server string) (answered bool, w *httptest.ResponseRecorder) {
	w = httptest.NewRecorder()
	answered = r.group.Absent(&Absent{W: w, R: request(t, method, Streamable.Path(server), callTool, nil), At: Streamable, Server: server, Share: mcp.Share{Principal: mcp.Anonymous}})
	return answered, w
}

// A request to a server that this replica has not is passed to one that has it, and to none that
// says it has not.
func TestAbsentServer(t *testing.T) {
	edge, having := lacking(t)
	lost := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Mcpbridge-Unserved", "1") })
	var asked []string
	served := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.Path) })
	having.instead.Store(&served)
	if answered, w := edge.absent(t, http.MethodPost, "weather"); !answered || w.Code != http.StatusOK || len(asked) != 1 || asked[0] != "/mcp/weather" {
		t.Errorf("= %v, %d, asked %v", answered, w.Code, asked)
	}
	if answered, _ := edge.absent(t, http.MethodPost, "nothing"); answered || len(asked) != 1 {
		t.Errorf("a server that nobody has: %v, asked %v", answered, asked)
	}
	having.instead.Store(&lost)
	if answered, w := edge.absent(t, http.MethodPost, "weather"); answered || w.Body.Len() > 0 {
		t.Errorf("a server that was lost: %v, %s", answered, w.Body)
	}
}

// One that has the server, and does not answer, is said to; a call that was sent may have taken
// effect.
func TestAbsentServerUnanswered(t *testing.T) {
	edge, having := lacking(t)
	cut := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	having.instead.Store(&cut)
	for method, want := range map[string]struct {
		status int
		text   string
	}{
		http.MethodPost: {http.StatusBadGateway, "may have taken effect"},
		http.MethodGet:  {http.StatusServiceUnavailable, "try again"},
	} {
		answered, w := edge.absent(t, method, "weather")
		if !answered || w.Code != want.status || !strings.Contains(w.Body.String(), `server \"weather\"`) || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%s = %v, %d %s", method, answered, w.Code, w.Body)
		}
	}
}
