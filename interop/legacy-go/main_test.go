package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A world is the server over HTTP with the SDK's own client on it.
type world struct {
	t       *testing.T
	b       *board
	url     string
	ledger  string
	refuse  string
	cs      *mcp.ClientSession
	updated chan string
}

func newWorld(t *testing.T, opts *mcp.StreamableHTTPOptions) *world {
	dir := t.TempDir()
	w := &world{t: t, ledger: filepath.Join(dir, "ledger"), refuse: filepath.Join(dir, "refuse"), updated: make(chan string, 100)}
	l, err := openLedger(w.ledger)
	if err != nil {
		t.Fatal(err)
	}
	w.b = newBoard(l, w.refuse, itemCount)
	g := &gate{next: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return w.b.server }, opts)}
	mux := http.NewServeMux()
	mux.Handle("/mcp", g)
	mux.Handle("/admin/", adminHandler(w.b, g))
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close(); l.close() })
	w.url = s.URL
	c := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { w.updated <- r.Params.URI },
	})
	if w.cs, err = c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp"}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cs.Close() })
	return w
}

func (w *world) call(name string, args any) *mcp.CallToolResult {
	w.t.Helper()
	res, err := w.cs.CallTool(w.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil || res.IsError {
		w.t.Fatalf("%s(%v) = %+v, %v", name, args, res, err)
	}
	return res
}

func (w *world) admin(method, path string, into any) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s = %d, %v", method, path, res.StatusCode, err)
	}
}

func (w *world) wait(uri string) {
	w.t.Helper()
	select {
	case got := <-w.updated:
		if got != uri {
			w.t.Errorf("an update of %s came, want %s", got, uri)
		}
	case <-time.After(time.Minute):
		w.t.Fatalf("no update of %s came", uri)
	}
}

func TestPages(t *testing.T) {
	w := newWorld(t, nil)
	pages, items := 0, 0
	for cursor, more := "", true; more; more = cursor != "" {
		res, err := w.cs.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		pages, items, cursor = pages+1, items+len(res.Resources), res.NextCursor
	}
	if pages != itemCount/pageSize || items != itemCount {
		t.Errorf("%d resources on %d pages, want %d on %d", items, pages, itemCount, itemCount/pageSize)
	}
	w.call("change_lists", changeArgs{Kind: "resources"})
	if res := w.call("text", textArgs{Size: 1000}); len(res.Content[0].(*mcp.TextContent).Text) != 1000 {
		t.Errorf("text is not of the size asked for")
	}
}

func TestTouch(t *testing.T) {
	w := newWorld(t, nil)
	uri := itemURI(7)
	if err := w.cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	w.call("touch", touchArgs{URI: uri, URIs: []string{itemURI(8)}})
	w.wait(uri)
	res, err := w.cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil || res.Contents[0].Text != "version 2" {
		t.Errorf("ReadResource = %+v, %v, want version 2", res, err)
	}
	var subs subscriptions
	if w.admin("GET", "/admin/subscriptions", &subs); subs.Total != 1 || subs.URIs[uri] != 1 || len(subs.Sessions) != 1 {
		t.Errorf("subscriptions = %+v, want one", subs)
	}
	if err := w.cs.Close(); err != nil {
		t.Fatal(err)
	}
	subs = subscriptions{}
	if w.admin("GET", "/admin/subscriptions", &subs); subs.Total != 0 || len(subs.Sessions) != 0 {
		t.Errorf("subscriptions after the session's end = %+v, want none", subs)
	}
	w.checkLedger([]string{"subscribe", "touch", "sent", "touch"})
}

// checkLedger wants what the file holds in order, and the same in memory.
func (w *world) checkLedger(want []string) {
	w.t.Helper()
	text, err := os.ReadFile(w.ledger)
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for line := range bytes.Lines(text) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil || e.Seq != len(got)+1 {
			w.t.Fatalf("ledger line %q: %v", line, err)
		}
		got = append(got, e.What)
	}
	if !slices.Equal(got, want) || len(w.b.ledger.after(0)) != len(want) {
		w.t.Errorf("ledger = %q, want %q", got, want)
	}
}

func TestRefusal(t *testing.T) {
	w := newWorld(t, nil)
	if err := os.WriteFile(w.refuse, []byte(itemURI(1)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: itemURI(1)}); err == nil {
		t.Error("a refused URI was granted")
	}
	if err := w.cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: itemURI(2)}); err != nil {
		t.Errorf("another URI was refused: %v", err)
	}
	w.checkLedger([]string{"refuse", "subscribe"})
}

// What happens while the GET stream is cut is replayed with event ids; the
// session and its subscription stay with and without.
func TestCut(t *testing.T) {
	for name, opts := range map[string]*mcp.StreamableHTTPOptions{
		"plain":     nil,
		"event ids": {EventStore: mcp.NewMemoryEventStore(nil)},
	} {
		for _, how := range []string{"abrupt", "clean"} {
			t.Run(name+" "+how, func(t *testing.T) { testCut(t, opts, how) })
		}
	}
}

func testCut(t *testing.T, opts *mcp.StreamableHTTPOptions, how string) {
	w := newWorld(t, opts)
	uri := itemURI(3)
	if err := w.cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	w.call("touch", touchArgs{URI: uri}) // so that the client has seen an event
	w.wait(uri)
	var cut struct{ Streams int }
	if w.admin("POST", "/admin/cut?how="+how+"&hold=100ms", &cut); cut.Streams != 1 {
		t.Errorf("cut ended %d streams, want 1", cut.Streams)
	}
	var touched entries
	w.admin("POST", "/admin/touch?uri="+uri, &touched)
	if opts != nil {
		w.wait(uri)
	}
	var subs subscriptions
	if w.admin("GET", "/admin/subscriptions", &subs); subs.Total != 1 {
		t.Errorf("subscriptions after the cut = %+v, want one", subs)
	}
}

// A server started anew on the ledger of another has its versions.
func TestVersionsSurvive(t *testing.T) {
	w := newWorld(t, nil)
	w.call("touch", touchArgs{URI: itemURI(4), Times: 3})
	l, err := openLedger(w.ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	next := newBoard(l, "", itemCount)
	if got, other := next.versions[itemURI(4)], next.versions[itemURI(5)]; got != 4 || other != 1 {
		t.Errorf("versions = %d and %d, want 4 and 1", got, other)
	}
}

func TestNonces(t *testing.T) {
	w := newWorld(t, nil)
	c := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"nonce": "re " + r.Params.Message}}, nil
		},
	})
	cs, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	for name, want := range map[string]string{
		"mark": `{"answers":[],"nonce":"n"}`,
		"ask":  `{"answers":["re n","re n"],"nonce":"n"}`,
	} {
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: nonceArgs{Nonce: "n", Times: 2}})
		if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != want {
			t.Errorf("%s = %+v, %v, want %s", name, res, err, want)
		}
	}
	calls := 0
	for _, e := range w.b.ledger.after(0) {
		if e.What == "call" && e.Nonce == "n" {
			calls++
		}
	}
	if calls != 2 {
		t.Errorf("the ledger tells of %d calls, want 2", calls)
	}
}
