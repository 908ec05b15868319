package report

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Lists are what servers answer, by server, method and the cursor of a page, which is "" for the
// first.
type lists map[string]string

func (l lists) ask(_ context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	cursor, _ := wire.GetString(params, "cursor")
	answer, ok := l[strings.TrimSpace(server+" "+method+" "+cursor)]
	switch {
	case answer == "":
		return nil, &wire.Error{Code: spec.CodeMethodNotFound, Message: "Method not found"}
	case !ok || answer[0] != '{':
		return nil, errors.New(answer)
	}
	return json.RawMessage(answer), nil
}

// notebooks are the lists of two servers that have the same.
func notebooks(names ...string) lists {
	l := make(lists)
	for _, name := range names {
		l[name+" tools/list"] = `{"tools":[{"name":"edit_note"},{"name":"enable_search"}]}`
		l[name+" prompts/list"] = `{"prompts":[{"name":"summarize"}]}`
		l[name+" resources/list"] = `{"resources":[{"uri":"note://journal","name":"journal"}],"nextCursor":"2"}`
		l[name+" resources/list 2"] = `{"resources":[{"uri":"note://todo","name":"todo"}],"nextCursor":null}`
	}
	return l
}

func loaded(t *testing.T, text string) *config.Config {
	t.Helper()
	c, _, err := config.Load(config.Options{Path: fileWith(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every name that clients of a group see is told of with its server, and what is hidden with the
// reason.
func TestNamesOfGroups(t *testing.T) {
	c := loaded(t, `servers:
  a: {builtin: notebook, tools: {deny: [enable_search], rename: {edit_note: write}}}
  b: {builtin: modern-notebook, prefix: bb}
groups:
  team: {servers: [a, b]}
  bare: {servers: [b, a], prefix: never, prefer: {summarize: a}}
`)
	l, asked := notebooks("a", "b"), make(map[string]int)
	told := NamesOfGroups(t.Context(), c, func(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
		asked[server+" "+method+string(params)]++
		return l.ask(ctx, server, method, params)
	})
	for what, times := range asked {
		if times != 1 {
			t.Errorf("%s is asked %d times, want once for all groups", what, times)
		}
	}
	text := table(t, (&States{Groups: told}).Print)
	const want = `
SERVER  STATE  REASON

GROUP bare      KIND      SERVER  OWN NAME
edit_note       tool      b       edit_note
enable_search   tool      b       enable_search
write           tool      a       edit_note
summarize       prompt    a       summarize
note://journal  resource  b       note://journal
note://todo     resource  b       note://todo

HIDDEN IN bare  KIND      SERVER  WHY
enable_search   tool      a       tools of a hides it
summarize       prompt    b       prefer says that it is that of a
note://journal  resource  a       b has it, too, and is before a
note://todo     resource  a       b has it, too, and is before a

GROUP team         KIND      SERVER  OWN NAME
a__write           tool      a       edit_note
bb__edit_note      tool      b       edit_note
bb__enable_search  tool      b       enable_search
a__summarize       prompt    a       summarize
bb__summarize      prompt    b       summarize
note://journal     resource  a       note://journal
note://todo        resource  a       note://todo

HIDDEN IN team  KIND      SERVER  WHY
enable_search   tool      a       tools of a hides it
note://journal  resource  b       a has it, too, and is before b
note://todo     resource  b       a has it, too, and is before b
`
	if text != want {
		t.Errorf("Print prints\n%s\nwant\n%s", text, want)
	}
}

// Whose a name is that two have, a person has to say; programs read so, too.
func TestNamesOfGroupsClash(t *testing.T) {
	c := loaded(t, "servers: {a: {builtin: notebook}, b: {builtin: notebook}}\ngroups: {bare: {servers: [a, b], prefix: never}}\n")
	told := NamesOfGroups(t.Context(), c, notebooks("a", "b").ask)
	const want = `      {
        "kind": "tool",
        "server": "a",
        "own": "edit_note",
        "why": "a and b have it; say with prefer whose it is"
      },
`
	if text := asJSON(t, told); len(told) != 1 || !strings.HasPrefix(text, "[\n  {\n    \"group\": \"bare\",\n    \"names\": [\n"+want) {
		t.Errorf("NamesOfGroups = %s\nwant it to begin with\n%s", text, want)
	}
}

// A server that is down, or has no such list, takes no name from the others.
func TestNamesOfGroupsWithoutAServer(t *testing.T) {
	c := loaded(t, "servers: {a: {builtin: notebook}, b: {builtin: notebook}}\ngroups: {bare: {servers: [a, b], prefix: never}}\n")
	l := notebooks("b")
	l["a tools/list"] = "it is down"
	var got []string
	for _, n := range NamesOfGroups(t.Context(), c, l.ask)[0].Names {
		got = append(got, n.Kind+" "+n.Name+" of "+n.Server)
	}
	const want = "tool edit_note of b, tool enable_search of b, prompt summarize of b, resource note://journal of b, resource note://todo of b"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("the names are %s, want %s", text, want)
	}
}
