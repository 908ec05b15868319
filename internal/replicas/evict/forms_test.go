package evict

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// What replicas tell each other to evict is written as other versions read it. What a later
// version tells beyond that has all results forgotten: nobody knows which of them it means.
func TestForms(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	resource := fanout.Event{Topic: fanout.Topic{Scope: "files/0123", Kind: fanout.ResourceUpdated, URI: "file:///a"}, URI: "file:///a/b"}
	tools := fanout.Event{Topic: fanout.Topic{Scope: "files/0123", Kind: fanout.ToolsListChanged}}
	for name, m := range map[string]message{
		"evict":        {Events: []fanout.Event{resource, tools}},
		"evict/forget": {Forget: []string{"files", "notes"}},
		"evict/ask":    {Ask: true},
	} {
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		forms.Want(name, string(text))
	}
	for name, want := range map[string][]string{
		"evict":              {"evict files@a/0123 file:///a/b", "evict files@a/0123 "},
		"evict/forget":       {"forget files", "forget notes"},
		"evict/ask":          nil,
		"evict/later-member": {"clear"},
		"evict/later-part":   {"clear"},
		"evict/later-kind":   {"clear"},
		"evict/later-ask":    {"clear"},
	} {
		r := new(replica)
		r.Group = &Group{opts: Options{Cache: r, Scope: func(server string) string { return server + "@a" }, Logger: slog.New(slog.DiscardHandler)}}
		w := httptest.NewRecorder()
		r.Serve(w, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(forms.Text(name))), "BBBBBBBB")
		if got := r.take(); w.Code != http.StatusNoContent || !slices.Equal(got, want) {
			t.Errorf("%s: status %d, and %q, want %q", name, w.Code, got, want)
		}
	}
}

// A replica that could not be told of something learns so from an answer to what can't be read,
// too: it may have asked.
func TestUnreadAsks(t *testing.T) {
	r := new(replica)
	r.Group = &Group{opts: Options{Cache: r, Logger: slog.New(slog.DiscardHandler)}, peers: map[string]*peer{"BBBBBBBB": {failing: true}}}
	for text, want := range map[string]int{`{"ask":true}`: http.StatusConflict, `{"question":1}`: http.StatusConflict, `{}`: http.StatusNoContent} {
		w := httptest.NewRecorder()
		if r.Serve(w, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(text)), "BBBBBBBB"); w.Code != want {
			t.Errorf("%s is answered with %d, want %d", text, w.Code, want)
		}
	}
}
