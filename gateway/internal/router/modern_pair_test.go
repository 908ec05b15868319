package router

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/cache"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// A modernPeer is a scripted server of 2026-07-28 on loopback.
type modernPeer struct {
	*httptest.Server

	mu      sync.Mutex
	answers map[string]string // method -> result
	got     []wire.Message    // requests, as they came
	names   []string          // their Mcp-Name, if they have one
	listens chan wire.Message
	hold    map[string]chan struct{} // method -> closed when it may be answered
}

func newModernPeer(t *testing.T) *modernPeer {
	p := &modernPeer{answers: map[string]string{}, listens: make(chan wire.Message, 256)}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func newModernRig(t *testing.T, keep []string) (*rig, *modernPeer) {
	return newModernRigWith(t, keep, func(*Options) {})
}

func newModernRigWith(t *testing.T, keep []string, change func(*Options)) (*rig, *modernPeer) {
	p := newModernPeer(t)
	r := newRig(t, func(o *Options) {
		o.Servers = []ServerOptions{{Name: "peer", Settings: settings.Server{Cache: public(keep...)}, Open: func(c mcp.Changes) (mcp.Back, error) {
			return modernback.New(modernback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, Logger: o.Logger, Settings: settings.Server{Linger: time.Millisecond},
				ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
		}}}
		change(o)
	})
	r.modern = p
	return r, p
}

// headers returns the Mcp-Name of the requests that had one.
func (p *modernPeer) headers() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.names)
}

func (p *modernPeer) serve(w http.ResponseWriter, r *http.Request) {
	m, ok := readMessage(w, r)
	if !ok {
		return
	}
	p.mu.Lock()
	p.got = append(p.got, m)
	p.names = append(p.names, r.Header[spec.HeaderName]...)
	answer, hold := p.answers[m.Method], p.hold[m.Method]
	p.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if m.Method == spec.MethodListen {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"%s","params":{"notifications":%s,"_meta":{"%s":%s}}}`+"\n\n",
			spec.NotifyAcknowledged, wire.Get(m.Params, "notifications"), spec.MetaSubscriptionID, m.ID)
		_ = http.NewResponseController(w).Flush()
		p.listens <- m
		<-r.Context().Done()
		return
	}
	if m.Method == spec.MethodDiscover {
		answer = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"m","version":"1"},"ttlMs":0,"cacheScope":"private"}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, answer)
}

// sent returns the params of the requests of a method that the peer received, without
// _meta.
func (p *modernPeer) sent(method string) (params []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		if m.Method == method {
			params = append(params, string(wire.AppendEdited(nil, m.Params, wire.Edit{Name: "_meta"})))
		}
	}
	return params
}

// Hints of a modern server pass with its result, which is not kept here whatever they
// say: nobody would count them down. Questions and retries are not kept either, and
// pass with the bytes of states and answers.
func TestS01CacheHintsAndRetries(t *testing.T) {
	t.Parallel()
	r, p := newModernRig(t, everyList)
	const (
		list  = `{"resultType":"complete","tools":[],"ttlMs":60000,"cacheScope":"public","_meta":{"` + spec.MetaServerInfo + `":{"name":"m","version":"1"}}}`
		asks  = `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"t\u0068eirs","x":1.0}`
		retry = `"uri":"a:b","inputResponses":{"k":{"roots":[],"n":1.0}},"requestState":"t\u0068eirs"`
	)
	p.answers["tools/list"], p.answers["resources/read"] = list, asks
	for n := range 2 {
		if got := r.call(t, "1", "tools/list", "", ""); got.body != `{"jsonrpc":"2.0","id":1,"result":`+list+`}` {
			t.Errorf("tools/list = %s\nwant the server's own: %s", got.body, list)
		}
		for _, rest := range []string{`"uri":"a:b"`, retry} {
			if got := r.call(t, "2", "resources/read", "a:b", rest); got.body != `{"jsonrpc":"2.0","id":2,"result":`+asks+`}` {
				t.Errorf("resources/read = %s\nwant the server's own: %s", got.body, asks)
			}
		}
		reads := p.sent("resources/read")
		if len(p.sent("tools/list")) != n+1 || len(reads) != 2*n+2 {
			t.Fatalf("the server got %d lists and %d reads, want %d and %d", len(p.sent("tools/list")), len(reads), n+1, 2*n+2)
		}
		if want := "{" + retry + "}"; reads[2*n+1] != want {
			t.Errorf("the server got %s\nwant         %s", reads[2*n+1], want)
		}
	}
	if got := r.g.Snapshot().Cache; got != (cache.Snapshot{}) {
		t.Errorf("cache = %+v, want it empty", got)
	}
}

// Streams of the four kinds are shared upstream, each under its own id and filter, and
// one that has an extension's member is not.
func TestS01ListenStreams(t *testing.T) {
	t.Parallel()
	r, p := newModernRig(t, nil)
	first := r.listen(t, `"1"`, `{"toolsListChanged":true}`)
	second := r.listen(t, "1", `{"toolsListChanged":true,"promptsListChanged":false}`)
	for id, f := range map[string]*frames{`"1"`: first, "1": second} {
		if got := f.next(); !strings.Contains(got, `"notifications":{"toolsListChanged":true}`) || !strings.Contains(got, `"`+spec.MetaSubscriptionID+`":`+id+`}`) {
			t.Errorf("acknowledgment = %s, want the filter, for %s", got, id)
		}
	}
	<-p.listens
	third := r.listen(t, "7", `{"toolsListChanged":true,"com.example/jobs":[1.0]}`)
	if got := third.next(); !strings.Contains(got, `"com.example/jobs":[1.0]`) || !strings.Contains(got, `"`+spec.MetaSubscriptionID+`":7}`) {
		t.Errorf("acknowledgment = %s, want the extension's", got)
	}
	<-p.listens
	if got := p.sent(spec.MethodListen); len(got) != 2 || r.g.Snapshot().Streams != 3 {
		t.Errorf("%d streams upstream (%v), %d open; want 2, 3", len(got), got, r.g.Snapshot().Streams)
	}
	r.g.EndStreams()
	for f := third; ; {
		if got := f.next(); strings.HasPrefix(got, `{"jsonrpc":"2.0","id":7,"result":`) {
			break
		} else if got == "" {
			t.Fatal("the stream ended without its result")
		}
	}
}
