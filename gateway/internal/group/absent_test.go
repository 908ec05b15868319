package group

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Members that are missing are asked no longer than somebody follows the list, and until a client
// has got it whole.
func TestG08NobodyIsAskedInVain(t *testing.T) {
	for name, then := range map[string]func(*testing.T, *rig, fanout.Topic){
		"nobody follows the list any more": func(_ *testing.T, r *rig, topic fanout.Topic) { r.audience.Want(-1, topic) },
		"the client has the whole list": func(t *testing.T, r *rig, _ fanout.Topic) {
			r.members["docs"].change(func(f *fake) { f.serve = nil })
			if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != "files__read docs__find" {
				t.Errorf("listed %s", got)
			}
		},
		"the group is closed": func(_ *testing.T, r *rig, _ fanout.Topic) { r.Back.close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				docs := newFake("docs", "find")
				docs.serve = silent
				r := newRig(t, nil, newFake("files", "read"), docs)
				topic := fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged}
				r.audience.Want(1, topic)
				namesOf(t, r, request(spec.MethodToolsList, ""))
				then(t, r, topic)
				asked := len(docs.requests())
				docs.change(func(f *fake) { f.serve = nil })
				time.Sleep(time.Minute)
				if again := len(docs.requests()) - asked; again > 0 || len(r.audience.Events()) > 0 {
					t.Errorf("it was asked %d times, and told %v", again, r.audience.Events())
				}
			})
		})
	}
}

// What later pages lack is forgotten once they are read, so that lists that nobody follows don't fill memory.
func TestG08NothingIsKeptOfPagesThatWereRead(t *testing.T) {
	docs := newFake("docs")
	docs.pages[spec.MethodToolsList] = [][]string{toolItems("a"), toolItems("b")}
	files := newFake("files")
	files.pages[spec.MethodToolsList] = docs.pages[spec.MethodToolsList]
	r := newRig(t, nil, files, docs)
	req := listAt(spec.MethodToolsList, listing(t, r, request(spec.MethodToolsList, "")))
	for _, err := range []error{errors.New("connection refused"), nil} {
		docs.change(func(f *fake) { f.err = err })
		listing(t, r, req)
		if kept := len(r.short.lists); (kept > 0) != (err != nil) {
			t.Errorf("docs answers with %v: %d lists are kept", err, kept)
		}
	}
}
