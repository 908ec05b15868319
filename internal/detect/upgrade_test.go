package detect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// A house is a server at one URL whose program can be replaced by one of the other
// era, while it runs.
type house struct {
	modern   atomic.Bool
	sessions bool                                 // the program of the older era gives session ids
	hold     func(r *http.Request, method string) // waits before the answer; may be nil
	// credentials are those of the program of the newer era; nil for none.
	credentials upstream.Credentials
}

func (h *house) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(text, wire.Options{})
	if h.hold != nil {
		h.hold(r, m.Method)
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.ID.IsZero():
		w.WriteHeader(http.StatusAccepted)
	case h.modern.Load():
		h.serveModern(w, &m)
	default:
		h.serveLegacy(w, r, &m)
	}
}

func (h *house) serveModern(w http.ResponseWriter, m *wire.Message) {
	if wire.Get(wire.Get(m.Params, "_meta"), spec.MetaProtocolVersion) == nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"modern only","data":{"supported":["2026-07-28"]}}}`, m.ID)
		return
	}
	result := `{"resultType":"complete","tools":[],"era":"modern"}`
	if m.Method == spec.MethodDiscover {
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"modern"}`
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (h *house) serveLegacy(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	switch {
	case m.Method == spec.MethodInitialize:
		if h.sessions {
			w.Header().Set("Mcp-Session-Id", "s")
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`, m.ID)
	case m.Method == spec.MethodDiscover:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
	case h.sessions && r.Header.Get("Mcp-Session-Id") == "":
		http.Error(w, "Bad Request: no session", http.StatusBadRequest)
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[],"era":"legacy"}}`, m.ID)
	}
}

// detect returns a Detector of the house's server with real backs.
func (h *house) detect(t *testing.T) (*Detector, func()) {
	l := bridgetest.Listen()
	srv := &http.Server{Handler: h}
	go srv.Serve(l) // ends with Close
	tr := l.Transport()
	info := []byte(`{"name":"t","version":"0"}`)
	var d *Detector
	doubt := func(why string) { d.Doubt(why) }
	mo := modernback.Options{Options: upstream.Options{Name: "s", URL: "http://127.0.0.1", RoundTripper: tr, ClientInfo: info, Doubt: doubt, Credentials: h.credentials}}
	lo := legacyback.Options{Options: upstream.Options{Name: "s", URL: "http://127.0.0.1", RoundTripper: tr, ClientInfo: info, Doubt: doubt}}
	d, err := New(Options{
		Name: "s",
		Probe: func(ctx context.Context) Finding {
			v, err := modernback.Probe(ctx, mo, mcp.Probing{})
			if err != nil {
				return Finding{Why: err.Error()}
			}
			return Finding{Era: v.Era, Why: v.Reason}
		},
		Open: func(f Finding) (mcp.Back, error) {
			if f.Era == spec.Modern {
				return modernback.New(mo)
			}
			return legacyback.New(lo)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, func() {
		_ = d.Close(context.Background())
		tr.CloseIdleConnections()
		_ = srv.Close()
	}
}

// listedBy returns which program a list of tools came from.
func listedBy(d *Detector) string {
	req := &mcp.Request{
		Method: spec.MethodToolsList, Params: []byte("{}"), Era: spec.Modern, Revision: spec.LatestModern,
		Profile: mcp.Profile{Scope: "s/a", Capabilities: []byte("{}")},
	}
	res, err := d.Serve(context.Background(), req, nil)
	if err != nil {
		return err.Error()
	}
	defer res.Release()
	era, _ := wire.GetString(res.Body, "era")
	return era
}

// A server that is upgraded, or rolled back, at its URL is noticed by what it answers,
// and served as what it is within a quarter of a minute of that.
func TestU02UpgradeInPlace(t *testing.T) {
	for _, tt := range []struct {
		name     string
		sessions bool
	}{{"with sessions", true}, {"without sessions", false}} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			h := &house{sessions: tt.sessions}
			d, end := h.detect(t)
			defer end()
			if got := listedBy(d); got != "legacy" {
				t.Fatalf("served by %s, want the older program", got)
			}
			time.Sleep(time.Hour)
			for _, want := range []string{"modern", "legacy", "modern"} {
				h.modern.Store(want == "modern")
				begun := time.Now()
				got := listedBy(d)
				for (got != want || d.Era().String() != want) && time.Since(begun) < 5*time.Minute {
					time.Sleep(time.Second)
					got = listedBy(d)
				}
				took := time.Since(begun)
				t.Logf("%s after %v", got, took)
				if got != want || d.Era().String() != want || took > doubtPauses.Min+5*time.Second {
					t.Fatalf("served by %s under the verdict %v, %v after it became %s", got, d.Era(), took, want)
				}
				time.Sleep(time.Hour)
			}
		})
	}
}

// A program of the older era without sessions serves what a modern back asks, and so
// would for ever, if its results did not give it away.
func TestU02RollbackThatStillAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{}
		h.modern.Store(true)
		d, end := h.detect(t)
		defer end()
		if got := listedBy(d); got != "modern" {
			t.Fatalf("served by %s, want the newer program", got)
		}
		h.modern.Store(false)
		if got := listedBy(d); got != "legacy" || !strings.Contains(d.Era().String(), "modern") {
			t.Fatalf("served by %s under the verdict %v, want the older program under the former verdict", got, d.Era())
		}
		time.Sleep(doubtPauses.Min + time.Second)
		if d.Era() != spec.Legacy {
			t.Errorf("verdict %v after a result that only the older era has, want legacy", d.Era())
		}
	})
}
