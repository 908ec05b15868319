package source_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/gateway/internal/source"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A requestRecorder notes the requests of other replicas.
type requestRecorder struct {
	next http.Handler
	mu   sync.Mutex
	all  []string // method, path, headers and body
}

func (rec *requestRecorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var headers []string
	for name, values := range r.Header {
		if strings.HasPrefix(name, "Mcp-") || name == "Accept" || name == "Content-Type" {
			headers = append(headers, name+": "+strings.Join(values, "|"))
		}
	}
	slices.Sort(headers)
	rec.mu.Lock()
	rec.all = append(rec.all, r.Method+" "+r.URL.Path+" "+strings.Join(headers, "; ")+" "+string(body))
	rec.mu.Unlock()
	rec.next.ServeHTTP(w, r)
}

// A replica asks the owner of a profile in the form that other versions read.
func TestFormOfWatching(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b")
		rec := &requestRecorder{next: r.by["a"]}
		r.by["a"].srv.Handler = rec // before it is asked anything
		r.by["a"].follow("ada", "u:1")
		r.by["b"].follow("ada", "u:1", "u:2")
		synctest.Wait()
		rec.mu.Lock()
		defer rec.mu.Unlock()
		if len(rec.all) != 1 {
			t.Fatalf("the owner was asked %d times: %q", len(rec.all), rec.all)
		}
		forms.Want("listen/numbers", rec.all[0])
	})
	for _, name := range []string{"listen", "listen/numbers", "listen/later"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { wantWatched(t, forms, name) })
		})
	}
}

// The owner serves what it understands of a request of an earlier or a later version, and says what
// that is.
func wantWatched(t *testing.T, forms *bridgetest.Forms, name string) {
	r := newRig(t, "a")
	text := forms.Text(name)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://a:2528/peer/watch/files", strings.NewReader(text[strings.IndexByte(text, '{'):]))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen", "X-Principal": "ada"} {
		req.Header.Set(name, value)
	}
	resp, err := r.by["a"].rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
				return data
			}
		}
		return "the end"
	}
	forms.Want(name+"/acknowledged", next())
	r.server.push("u:1")
	forms.Want(name+"/updated", next())
}

// Replicas of all versions claim a profile by the same name.
func TestFormOfNames(t *testing.T) {
	p := mcp.Profile{Scope: "files@2/0123", Principal: "ada"}
	each := source.Names{Server: "files", Definition: "89ab"}
	whole := each
	whole.Whole = true
	for what, tt := range map[string]struct{ got, want string }{
		"a profile":            {each.Of(p), "89ab/files/0123"},
		"all of a principal":   {whole.Of(p), "89ab/files/of/fdee430d40bd57deeac186cd"},
		"what listens name it": {source.Name(p.Scope), "files/0123"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is claimed by %q, want %q", what, tt.got, tt.want)
		}
	}
}
