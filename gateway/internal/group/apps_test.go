package group

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// withApps returns a member with tools, each with what its _meta has.
func withApps(name string, tools ...string) *fake {
	f := newFake(name)
	var items []string
	for i := 0; i < len(tools); i += 2 {
		items = append(items, `{"name":"`+tools[i]+`","inputSchema":{},"_meta":`+tools[i+1]+`}`)
	}
	f.pages[spec.MethodToolsList] = [][]string{items}
	return f
}

const forApps = `{"ui":{"resourceUri":"ui://x"}}`

// apps returns what takes calls of apps to next.
func (r *rig) apps(next mcp.Handler) mcp.Handler {
	var g Group
	g.back.Store(r.Back)
	return g.Apps(next)
}

// calls calls a tool as an app does.
func (r *rig) calls(t *testing.T, name string) (string, error) {
	t.Helper()
	res, err := r.apps(r.Back).Serve(t.Context(), request(spec.MethodToolsCall, `{"name":`+string(wire.Quote(name))+`}`), &backtest.Caller{})
	return backtest.Body(res, err)
}

// An app calls the tools that its server has for it by their own names.
func TestG06AppsCallBareNames(t *testing.T) {
	a := withApps("a", "one", forApps, "both", forApps, "plain", `{}`, "model", `{"ui":{"visibility":["model"]}}`, "app", `{"ui":{"visibility":["app"]}}`,
		"all", `{"ui":{"visibility":["model","app"]}}`, "none", `{"ui":{"visibility":[]}}`, "null", `{"ui":{"visibility":null}}`, "odd", `{"ui":"x"}`, "an odd name", forApps, "shared", forApps)
	b := withApps("b", "both", forApps, "other", forApps, "shared", `{}`, "b__x", forApps)
	r := newRig(t, nil, a, b)
	for name, owner := range map[string]*fake{"one": a, "app": a, "all": a, "null": a, "other": b, "shared": a, "an odd name": a, "a__one": a, "b__b__x": b, "a__plain": a} {
		if _, err := r.calls(t, name); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if last := owner.last(t); last.Method != spec.MethodToolsCall || last.Subject() != strings.TrimPrefix(strings.TrimPrefix(name, "a__"), "b__") && name != "b__b__x" {
			t.Errorf("%s: the last request is %s %s", name, last.Method, last.Subject())
		}
	}
	for _, name := range []string{"plain", "model", "none", "odd", "nobody", "One", "one ", "ｏne", "%6Fne", "", "b__x", "a", "a__", "app\u0000"} {
		before := len(a.asks(spec.MethodToolsCall)) + len(b.asks(spec.MethodToolsCall))
		_, err := r.calls(t, name)
		wantError(t, name, err, spec.CodeInvalidParams, "Unknown")
		if n := len(a.asks(spec.MethodToolsCall)) + len(b.asks(spec.MethodToolsCall)); n != before && name != "b__x" && name != "a__" {
			t.Errorf("%q: a member was asked", name)
		}
	}
	const both = `Unknown tool: both; several servers have it for their apps, so call it by its whole name: "a" as a__both, "b" as b__both`
	_, err := r.calls(t, "both")
	wantError(t, "both", err, spec.CodeInvalidParams, both)
	a.change(func(f *fake) { f.gone = true })
	_, err = r.calls(t, "both")
	wantError(t, "both, while one is away", err, spec.CodeInvalidParams, both)
	_, err = r.calls(t, "one")
	wantError(t, "one, while it is away", err, spec.CodeInternal, `"a"`)
}

// What controls the access to the group sees the name that clients see, and only that of a call.
func TestG06BareNamesMeetThePolicy(t *testing.T) {
	a := withApps("a", "one", forApps)
	r := newRig(t, nil, a, withApps("b", "two", forApps))
	var saw []string
	control := handlerFunc(func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
		saw = append(saw, req.Method+" "+string(req.Params))
		return nil, &mcp.Refusal{Barred: true, Err: wire.Errorf(spec.CodeInvalidRequest, "denied")}
	})
	for _, req := range []*mcp.Request{
		request(spec.MethodToolsCall, `{ "name":"one" }`), request(spec.MethodToolsCall, `{"name":"b__two"}`), request(spec.MethodToolsCall, `{"name":"three"}`),
		request(spec.MethodPromptsGet, `{"name":"one"}`), request(spec.MethodToolsCall, `{"Name":"one"}`),
	} {
		_, err := r.apps(control).Serve(t.Context(), req, &backtest.Caller{})
		wantError(t, req.Method, err, spec.CodeInvalidRequest, "denied")
	}
	want := []string{`tools/call { "name":"a__one" }`, `tools/call {"name":"b__two"}`, `tools/call {"name":"three"}`, `prompts/get {"name":"one"}`, `tools/call {"Name":"one"}`}
	if !slices.Equal(saw, want) {
		t.Errorf("the control saw %q, want %q", saw, want)
	}
	// Without prefixes, names are bare.
	bare := newRig(t, func(o *Options) { o.Bare = true }, a, withApps("b"))
	saw = nil
	_, err := bare.apps(control).Serve(t.Context(), request(spec.MethodToolsCall, `{"name":"one"}`), &backtest.Caller{})
	wantError(t, "without prefixes", err, spec.CodeInvalidRequest, "denied")
	if !slices.Equal(saw, []string{`tools/call {"name":"one"}`}) {
		t.Errorf("without prefixes the control saw %q", saw)
	}
}

// What a member that is away had for its apps counts, also if that was in an earlier run.
func TestG06MembersThatAreAway(t *testing.T) {
	a, b := withApps("a", "one", forApps, "both", forApps), newFake("b")
	b.gone = true
	r := newRig(t, func(o *Options) {
		o.Memory = recalled{"b": `[{"name":"both","_meta":` + forApps + `},{"name":"other","_meta":` + forApps + `},{"name":"plain"}]`}
	}, a, b)
	if _, err := r.calls(t, "one"); err != nil {
		t.Error(err)
	}
	_, err := r.calls(t, "both")
	wantError(t, "both", err, spec.CodeInvalidParams, `"b" as b__both`)
	_, err = r.calls(t, "other")
	wantError(t, "other", err, spec.CodeInternal, `"b"`)
	_, err = r.calls(t, "plain")
	wantError(t, "plain", err, spec.CodeInvalidParams, "Unknown")
}

// recalled has the tools of members in an earlier run.
type recalled map[string]string

// Recall implements [Memory].
func (r recalled) Recall(member string, _ *mcp.Request, method string) []byte {
	if method != spec.MethodToolsList {
		return nil
	}
	return []byte(r[member])
}

// Remember implements [Memory].
func (r recalled) Remember(string, *mcp.Request, string, []byte) {}

// Another profile may see other tools.
func TestG06ByProfile(t *testing.T) {
	a, b := withApps("a", "one", forApps), withApps("b")
	r := newRig(t, nil, a, b)
	if _, err := r.calls(t, "one"); err != nil {
		t.Fatal(err)
	}
	a.change(func(f *fake) { f.pages[spec.MethodToolsList] = [][]string{{}} })
	req := as(request(spec.MethodToolsCall, `{"name":"one"}`), "all/2")
	_, err := r.apps(r.Back).Serve(t.Context(), req, &backtest.Caller{})
	wantError(t, "who does not see it", err, spec.CodeInvalidParams, "Unknown")
}

// A handlerFunc is a Handler.
type handlerFunc func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error)

// Serve implements [mcp.Handler].
func (f handlerFunc) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	return f(ctx, req, c)
}
