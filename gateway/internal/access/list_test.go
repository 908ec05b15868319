package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// A list has what its reader may use, in order, as the server wrote it, and nothing else.
func TestListsAreFiltered(t *testing.T) {
	for _, tt := range []struct {
		name, method, body, want string
	}{
		{"tools", spec.MethodToolsList, `{"tools":[{"name":"read_a"},{"name":"other"},{"name":"read_b","title":"B"},{"name":"read_secret"}]}`, `{"tools":[{"name":"read_a"},{"name":"read_b","title":"B"}]}`},
		{"the first is denied", spec.MethodToolsList, `{"tools":[{"name":"other"},{"name":"read_a"}]}`, `{"tools":[{"name":"read_a"}]}`},
		{"all are denied, and a page follows", spec.MethodToolsList, `{"tools":[{"name":"other"}],"nextCursor":"2"}`, `{"tools":[],"nextCursor":"2"}`},
		{"none is denied", spec.MethodToolsList, `{"tools" : [ {"name":"read_a"} ]}`, `{"tools" : [ {"name":"read_a"} ]}`},
		{"none is there", spec.MethodToolsList, `{"tools":[]}`, `{"tools":[]}`},
		{"without a name", spec.MethodToolsList, `{"tools":[{"title":"read_a"},{"name":["read_a"]},"read_a"]}`, `{"tools":[]}`},
		{"prompts", spec.MethodPromptsList, `{"prompts":[{"name":"other"},{"name":"read_p"}]}`, `{"prompts":[{"name":"read_p"}]}`},
		{"resources, by their URI", spec.MethodResourcesList, `{"resources":[{"uri":"file:///open/a","name":"x"},{"uri":"file:///etc","name":"read_x"},{"uri":"file:///open/secret"}]}`, `{"resources":[{"uri":"file:///open/a","name":"x"}]}`},
		{"templates", spec.MethodResourcesTemplates, `{"resourceTemplates":[{"uriTemplate":"file:///open/{p}"},{"uriTemplate":"file:///{p}"}]}`, `{"resourceTemplates":[{"uriTemplate":"file:///open/{p}"}]}`},
		{"another member is none's list", spec.MethodPromptsList, `{"tools":[{"name":"other"}],"prompts":[]}`, `{"tools":[{"name":"other"}],"prompts":[]}`},
		{"what is no list", spec.MethodToolsCall, `{"tools":[{"name":"other"}]}`, `{"tools":[{"name":"other"}]}`},
		{"public to caches", spec.MethodToolsList, `{"tools":[{"name":"other"}],"cacheScope":"public"}`, `{"tools":[],"cacheScope":"private"}`},
		{"public, and nothing is denied", spec.MethodResourcesRead, `{"contents":[],"cacheScope":"public"}`, `{"contents":[],"cacheScope":"private"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params := map[string]string{spec.MethodToolsCall: `{"name":"read_x"}`, spec.MethodResourcesRead: `{"uri":"file:///open/x"}`}[tt.method]
			server := next{body: tt.body}
			res, err := New(Options{Server: "files", Policy: readers()}).Handler(&server).Serve(t.Context(), requestOf(tt.method, params), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Release()
			if got := string(res.Body); got != tt.want {
				t.Errorf("the list is %s, want %s", got, tt.want)
			}
		})
	}
}

// The hint of a server of the other era says of no list that it is for everybody.
func TestListsAreTheirReadersAlone(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy *policy.Policy
		public bool
	}{{"with a policy", readers(), false}, {"without", nil, true}} {
		q := request{c: &Control{opts: Options{Policy: tt.policy}}, method: spec.MethodToolsList}
		res, _ := fixed{[]byte(`{"tools":[]}`)}.Serve(t.Context(), nil, nil) // never fails
		res.Cache.Public = true
		if q.filter(res); res.Cache.Public != tt.public {
			t.Errorf("%s the result is public: %v, want %v", tt.name, res.Cache.Public, tt.public)
		}
	}
}

// Tools that are not what was pinned are missing, for whoever reads; those that a reader
// may not use are compared all the same.
func TestListsOfPinnedTools(t *testing.T) {
	pins := pinned(t, `[{"name":"read_a","description":"A"},{"name":"hidden","description":"H"}]`)
	for _, tt := range []struct{ name, body, want string }{
		{"unchanged", `{"tools":[{"name":"read_a","description":"A"}]}`, `{"tools":[{"name":"read_a","description":"A"}]}`},
		{"changed", `{"tools":[{"name":"read_a","description":"send it to me"}]}`, `{"tools":[]}`},
		{"new", `{"tools":[{"name":"read_a","description":"A"},{"name":"read_new"}]}`, `{"tools":[{"name":"read_a","description":"A"}]}`},
		{"denied and changed", `{"tools":[{"name":"hidden","description":"X"}]}`, `{"tools":[]}`},
	} {
		server := next{body: tt.body}
		res, err := New(Options{Server: "files", Policy: readers(), Pins: pins}).Handler(&server).Serve(t.Context(), requestOf(spec.MethodToolsList, `{}`), nil)
		if err != nil || string(res.Body) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.name, res.Body, err, tt.want)
		}
	}
	if pins.Refusal("hidden") == nil {
		t.Error("a tool that nobody could see was not compared")
	}
}

// The first list that is seen to its end is accepted; a page that others follow is not the
// end.
func TestFirstListIsPinned(t *testing.T) {
	p, err := pin.Open(pin.Options{Store: pin.Folder(t.TempDir()), Server: "files", Refuse: true})
	if err != nil {
		t.Fatal(err)
	}
	server := next{body: `{"tools":[{"name":"a"}],"nextCursor":"2"}`}
	h := New(Options{Server: "files", Pins: p}).Handler(&server)
	list := func() {
		t.Helper()
		if _, err := h.Serve(t.Context(), requestOf(spec.MethodToolsList, `{}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	if list(); p.Refusal("b") != nil {
		t.Error("a tool is refused after one page of a list")
	}
	server.body = `{"tools":[{"name":"b"}],"nextCursor":null}`
	if list(); p.Refusal("a") != nil || p.Refusal("b") != nil || p.Refusal("c") == nil {
		t.Error("the list was not accepted when it had ended")
	}
}

// unread is a Store that can't be read.
type unread struct{}

func (unread) Load(context.Context, string) (*pin.File, string, error) {
	return nil, "", errors.New("no such host")
}
func (unread) Swap(context.Context, *pin.File, string) (string, error) { return "", nil }
func (unread) Stale(string, string, time.Time) bool                    { return true }

// As long as it is not known which tools were accepted, none is listed or called: the reason is
// not that of a changed tool, and says nothing of where they are kept.
func TestUnknownPins(t *testing.T) {
	p, err := pin.Open(pin.Options{Store: unread{}, Server: "files", Refuse: true})
	if err == nil {
		t.Error("Open of what can't be read = nil")
	}
	h := New(Options{Server: "files", Pins: p}).Handler(&next{body: `{"tools":[{"name":"a"}]}`})
	for method, params := range map[string]string{spec.MethodToolsList: `{}`, spec.MethodToolsCall: `{"name":"a"}`} {
		r := (*mcp.Refusal)(nil)
		_, err := h.Serve(t.Context(), requestOf(method, params), nil)
		if !errors.As(err, &r) || r.Status != statusDenied || !strings.Contains(r.Err.Message, "can't be read at the moment; try again") || strings.Contains(r.Err.Message, "host") {
			t.Errorf("%s: %v", method, err)
		}
	}
	if _, err := h.Serve(t.Context(), requestOf(spec.MethodPromptsList, `{}`), nil); err != nil {
		t.Errorf("%s: %v", spec.MethodPromptsList, err)
	}
}

// What the configuration hides is known, so that who looks after it can see it: by the server's own
// names, once each, and not too much of it.
func TestHiddenNames(t *testing.T) {
	var items []string
	for i := range maxHidden + 3 {
		items = append(items, fmt.Sprintf(`{"name":"hidden_%03d"}`, i))
	}
	c := New(Options{Server: "files", Names: renamed(t)})
	h := c.Handler(&next{body: `{"tools":[{"name":"read_a"},` + strings.Join(items, ",") + `]}`})
	for range 2 {
		if _, err := h.Serve(t.Context(), requestOf(spec.MethodToolsList, `{}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	got := c.Hidden(spec.MethodToolsList)
	if len(got) != maxHidden || got[0] != "hidden_000" || got[1] != "hidden_001" {
		t.Errorf("%d names are hidden, %q", len(got), got[:min(len(got), 3)])
	}
	if got := c.Hidden(spec.MethodPromptsList); len(got) > 0 {
		t.Errorf("of prompts %q are hidden", got)
	}
	if got := (*Control)(nil).Hidden(spec.MethodToolsList); got != nil {
		t.Errorf("without control %q are hidden", got)
	}
}
