package group

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Members that are missing are asked no longer than somebody follows the list, and until the client
// has got it whole, if the profile is that of its session alone.
func TestG08NobodyIsAskedInVain(t *testing.T) {
	req := request(spec.MethodToolsList, "")
	req.Profile.Revision = spec.LatestLegacy
	for name, then := range map[string]func(*testing.T, *rig, fanout.Topic){
		"nobody follows the list any more": func(_ *testing.T, r *rig, topic fanout.Topic) { r.audience.Want(-1, topic) },
		"the client has the whole list": func(t *testing.T, r *rig, _ fanout.Topic) {
			r.members["docs"].change(func(f *fake) { f.serve = nil })
			if got := namesOf(t, r, req); got != "files__read docs__find" {
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
				namesOf(t, r, req)
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

// Clients may share a profile. One that has got a list without some members is told when another one
// gets them, and then of the rest.
func TestG08AnotherClientReadsWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		docs, notes := newFake("docs", "find"), newFake("notes", "add")
		docs.serve, notes.serve = silent, silent
		r := newRig(t, nil, newFake("files", "read"), docs, notes)
		topic := fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged}
		r.audience.Want(1, topic)
		for i, want := range []string{`files__read missing ["docs","notes"]`, `files__read docs__find missing ["notes"]`, "files__read docs__find notes__add"} {
			for _, who := range []string{"a client", "the first client, which was told"} {
				if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != want {
					t.Errorf("list %d: %s gets %s, want %s", i+1, who, got, want)
				}
				time.Sleep(time.Minute)
			}
			if told := r.audience.Events(); len(told) != i || i > 0 && told[i-1].Topic != topic {
				t.Errorf("a minute after list %d changes are told of %v, want %d of tools", i+1, told, i)
			}
			[]*fake{docs, notes, notes}[i].change(func(f *fake) { f.serve = nil })
		}
	})
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

// A member may answer one client, and not another. Whoever is told of that reads the list again, so nobody
// is told more often than once in the shortest pause.
func TestG08MembersThatAnswerEverySecondTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		docs := newFake("docs", "find")
		answers := false
		docs.serve = func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
			if answers = !answers; !answers {
				return nil, nil
			}
			return nil, errors.New("no")
		}
		r := newRig(t, nil, newFake("files", "read"), docs)
		r.audience.Want(1, fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged})
		for range 1000 { // in 10 s
			namesOf(t, r, request(spec.MethodToolsList, ""))
			time.Sleep(10 * time.Millisecond)
		}
		if told := len(r.audience.Events()); told < 5 || told > 20 {
			t.Errorf("changes were told of %d times in 10 s, want about 10", told)
		}
	})
}
