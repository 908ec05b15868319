package overview

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// lists are those of a member: shown names, by method.
type lists map[string][]string

// known returns what is known of a group whose members have listed these, in the order a, b, c.
func known(listed ...lists) *group.Known {
	k := &group.Known{Options: group.Options{Name: "all", NameMax: 64, Patience: 3 * time.Second, StartPatience: time.Minute}}
	for i, of := range listed {
		name := string(rune('a' + i))
		k.Members = append(k.Members, group.MemberOptions{Name: name, Prefix: name})
		k.Lists = append(k.Lists, make(map[string]group.KnownList))
		for method, shown := range of {
			k.Lists[i][method] = group.KnownList{Names: shown}
		}
	}
	return k
}

// served returns a member of which a gateway knows its name alone.
func served(name string) *Member {
	return &Member{Told: status.Server{Name: name, State: "ready"}, Hidden: func(string) []string { return nil }}
}

// A member is told of as its own endpoint has it: with its own names and what hides others. One that
// is not served any more has what it listed. Texts have no secret of the configuration.
func TestRoom(t *testing.T) {
	renames, err := names.New(names.Options{Tools: names.Part{Rename: map[string]string{"dig": "mine"}, Deny: []string{"drop"}}})
	if err != nil {
		t.Fatal(err)
	}
	then := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	a, b := served("a"), served("b")
	a.Names, a.Told.Upstream = renames, status.Upstream{Era: "legacy", Revision: "2025-11-25", Since: then}
	a.Hidden = func(method string) []string { return map[string][]string{spec.MethodToolsList: {"drop"}}[method] }
	b.Told.State, b.Told.Error, b.Told.Upstream = "down", "no route to "+secret, status.Upstream{Era: "modern", LastErrorTime: then}
	k := known(
		lists{spec.MethodToolsList: {"mine", "key-" + secret}, spec.MethodPromptsList: {}, spec.MethodResourcesList: {"x://1"}},
		lists{spec.MethodResourcesList: {"x://1"}, spec.MethodResourcesTemplates: {"x://{id}"}},
		lists{spec.MethodPromptsList: {"lost"}},
	)
	more := k.Lists[0][spec.MethodToolsList]
	more.More = true
	k.Lists[0][spec.MethodToolsList] = more
	k.Require = true
	room := Room(status.Server{Name: "all", State: "ready"}, k, func(name string) *Member {
		return map[string]*Member{"a": a, "b": b}[name]
	}, redact.New(secret))
	const none = `{"known":false,"shown":0}`
	want := []string{
		`{"name":"a","prefix":"a","state":"ready","since":"2026-11-01T12:00:00Z","era":"legacy","revision":"2025-11-25",` +
			`"tools":{"known":true,"shown":2,"hidden":1,"more":true},"prompts":{"known":true,"shown":0},"resources":{"known":true,"shown":1},"templates":` + none + `,"names":[` +
			`{"kind":"tool","name":"a__mine","own":"dig"},{"kind":"tool","name":"a__key-[hidden]","own":"key-[hidden]"},{"kind":"tool","own":"drop","why":"tools of a hides it"},` +
			`{"kind":"resource","name":"x://1","own":"x://1"}]}`,
		`{"name":"b","prefix":"b","state":"down","error":"no route to [hidden]","failed":"2026-11-01T12:00:00Z","era":"modern",` +
			`"tools":` + none + `,"prompts":` + none + `,"resources":{"known":true,"shown":0,"hidden":1},"templates":{"known":true,"shown":1},"names":[` +
			`{"kind":"resource","own":"x://1","why":"a has it, too, and is before b"},{"kind":"template","name":"x://{id}","own":"x://{id}"}]}`,
		`{"name":"c","prefix":"c","state":"gone","era":"unknown",` +
			`"tools":` + none + `,"prompts":{"known":true,"shown":1},"resources":` + none + `,"templates":` + none + `,"names":[{"kind":"prompt","name":"c__lost","own":"lost"}]}`,
	}
	for i := range room.Members {
		wantJSON(t, room.Members[i], want[i])
	}
	room.Members = room.Members[:0]
	wantJSON(t, room, `{"name":"all","state":"ready","prefix":"always","name_max":64,"on_missing":"fail","patience":"3s","start_patience":"1m0s","members":[]}`)
}

// wantJSON wants what is told to be a text.
func wantJSON(t *testing.T, told any, want string) {
	t.Helper()
	if got, err := json.Marshal(told); err != nil || string(got) != want {
		t.Errorf("it is told\n%s, %v, want\n%s", got, err, want)
	}
}

// Without prefixes it says who has a name that several have.
func TestRoomWithoutPrefixes(t *testing.T) {
	for prefer, want := range map[string]string{
		"":  "why: a and b have it; say with prefer whose it is",
		"b": "why: prefer says that it is that of b",
		"a": "n1",
	} {
		k := known(lists{spec.MethodToolsList: {"n1"}}, lists{spec.MethodToolsList: {"n1"}})
		k.Bare = true
		if prefer != "" {
			k.Prefer = map[string]string{"n1": prefer}
		}
		room := Room(status.Server{}, k, served, nil)
		got := room.Members[0].Names[0].Name
		if why := room.Members[0].Names[0].Why; why != "" {
			got += "why: " + why
		}
		if got != want || room.Prefix != "never" || room.Members[0].Prefix != "" {
			t.Errorf("with %q preferred a has %q, with the prefix %q; want %q", prefer, got, room.Members[0].Prefix, want)
		}
	}
}

// A member with very many names has the first of them, and the number of the others; what it gives is
// counted whole.
func TestRoomIsBounded(t *testing.T) {
	var tools []string
	for i := range status.MaxRoomNames - 1 {
		tools = append(tools, fmt.Sprint("t", i))
	}
	k := known(lists{spec.MethodToolsList: tools, spec.MethodPromptsList: {"p1", "p2", "p3"}}, lists{spec.MethodToolsList: {"t"}})
	hides := served("a")
	hides.Hidden = func(method string) []string { return map[string][]string{spec.MethodPromptsList: {"h"}}[method] }
	room := Room(status.Server{}, k, func(name string) *Member {
		if name == "a" {
			return hides
		}
		return served(name)
	}, nil)
	a, b := &room.Members[0], &room.Members[1]
	if len(a.Names) != status.MaxRoomNames || a.Left != 3 || a.Names[len(a.Names)-1].Own != "p1" {
		t.Errorf("a has %d names up to %+v, and %d are left", len(a.Names), a.Names[len(a.Names)-1], a.Left)
	}
	if a.Tools.Shown != status.MaxRoomNames-1 || a.Prompts != (status.Given{Known: true, Shown: 3, Hidden: 1}) {
		t.Errorf("a gives tools %+v and prompts %+v", a.Tools, a.Prompts)
	}
	if len(b.Names) != 1 || b.Left != 0 {
		t.Errorf("b has %+v, and %d are left", b.Names, b.Left)
	}
}
