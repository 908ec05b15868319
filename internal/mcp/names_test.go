package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func TestScopes(t *testing.T) {
	for scope, want := range map[string][3]string{ // prefix, server, plain
		"notes":          {"notes", "notes", "notes"},
		"notes@2/abc":    {"notes@2", "notes", "notes/abc"},
		"notes/abc/def":  {"notes", "notes", "notes/abc/def"},
		"notes@2":        {"notes@2", "notes", "notes"},
		"notes/abc@def/": {"notes", "notes", "notes/abc@def/"},
	} {
		if got := [3]string{ScopePrefix(scope), ServerOf(scope), PlainScope(scope)}; got != want {
			t.Errorf("%s: %q, want %q", scope, got, want)
		}
	}
}

// An anonymous client is its address; in IPv6 its network, whose addresses it can choose.
func TestShares(t *testing.T) {
	for _, tt := range []struct {
		p        Principal
		addr     string
		wantsNet string
	}{
		{Anonymous, "192.0.2.7", "192.0.2.7/32"},
		{Anonymous, "::ffff:192.0.2.7", "192.0.2.7/32"},
		{Anonymous, "2001:db8::7%eth0", "2001:db8::/64"},
		{"ada", "192.0.2.7", "invalid Prefix"},
	} {
		if got := NewShare(tt.p, netip.MustParseAddr(tt.addr)).Net.String(); got != tt.wantsNet {
			t.Errorf("NewShare(%q, %s) is of %s, want %s", tt.p, tt.addr, got, tt.wantsNet)
		}
	}
	if got := NewShare(Anonymous, netip.Addr{}); got != (Share{Principal: Anonymous}) {
		t.Errorf("without an address: %+v", got)
	}
}

func TestIdentity(t *testing.T) {
	refused := errors.New("refused")
	var nobody *Identity
	ada := &Identity{Principal: "ada", Scopes: []string{"read"}}
	if nobody.Token() != "" || nobody.Verify(t.Context()) != nil || nobody.MayBeRefused() || nobody.MayEnd() || nobody.HasScopes("read") || !nobody.HasScopes() {
		t.Error("an anonymous client has a credential")
	}
	if ada.MayEnd() || ada.MayBeRefused() || !ada.HasScopes("read") || ada.HasScopes("read", "write") {
		t.Error("what a credential without an end may do")
	}
	ada.SetToken("secret")
	ada.SetVerify(func(context.Context) error { return refused })
	if ada.Token() != "secret" || ada.Verify(t.Context()) != refused || !ada.MayBeRefused() || !ada.MayEnd() {
		t.Error("what a credential with an end may do")
	}
	if got := ada.LogValue().String() + nobody.LogValue().String(); got != "ada"+string(Anonymous) {
		t.Errorf("logs have %s", got)
	}
}

func TestNamesOfRequests(t *testing.T) {
	for _, tt := range []struct{ method, params, want string }{
		{spec.MethodToolsCall, `{"name":"` + strings.Repeat("x", 300) + `"}`, strings.Repeat("x", maxSubject-1) + "…"},
		{spec.MethodResourcesRead, `{"uri":"x:"}`, "x:"},
		{spec.MethodToolsList, `{"name":"x"}`, ""},
	} {
		if got := Subject(tt.method, []byte(tt.params)); got != tt.want {
			t.Errorf("Subject(%s, %s) = %s, want %s", tt.method, tt.params, got, tt.want)
		}
	}
	if got := QuestionText([]byte(`{"message":"Sure?"}`)); got != "Sure?" {
		t.Errorf("QuestionText = %q", got)
	}
}

// A probe lists what the server declares, page by page, and says how far it came.
func TestProbingLists(t *testing.T) {
	pages := map[string]string{
		`tools/list {}`:             `{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"2"}`,
		`tools/list {"cursor":"2"}`: `{"tools":[{"name":"c"}],"nextCursor":""}`,
		`resources/list {}`:         `{"resources":[{"uri":"x:"}],"nextCursor":"2"}`,
	}
	ask := func(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a list has no bound")
		}
		page, ok := pages[method+" "+string(params)]
		if !ok {
			return nil, errors.New("no such page")
		}
		return json.RawMessage(page), nil
	}
	var begun []string
	p := Probing{Begin: func(sent string) { begun = append(begun, sent) }}
	lists, steps := p.List(t.Context(), []byte(`{"tools":{},"prompts":null,"resources":{}}`), time.Minute, ask)
	var got []string
	for i, step := range steps {
		got = append(got, lists[i].Method+": "+step.Answer)
	}
	want := "tools/list: 3 tools on 2 pages|resources/list: 1 resources, then: no such page|resources/templates/list: 0 resourceTemplates, then: no such page"
	if strings.Join(got, "|") != want || len(begun) != 3 {
		t.Errorf("lists = %q, begun %q, want %s", got, begun, want)
	}
	lists, _ = p.List(t.Context(), []byte(`{"tools":{}}`), time.Minute, func(context.Context, string, []byte) (json.RawMessage, error) {
		return json.RawMessage(`{"tools":[],"nextCursor":"again"}`), nil
	})
	if lists[0].Err != errPages || lists[0].Pages != maxPages {
		t.Errorf("a list without an end: %d pages, %v", lists[0].Pages, lists[0].Err)
	}
}

func TestProbingAwait(t *testing.T) {
	asked, done := Probing{}.Await(t.Context())
	if done(); asked.Err() == nil {
		t.Error("the request goes on after its response")
	}
	asked, done = Probing{Silence: func(context.Context) bool { return true }}.Await(t.Context())
	<-asked.Done()
	if done(); context.Cause(asked) != ErrSilent {
		t.Errorf("a silent server ends the request with %v", context.Cause(asked))
	}
	asked, done = Probing{Silence: func(ctx context.Context) bool { <-ctx.Done(); return false }}.Await(t.Context())
	if done(); errors.Is(context.Cause(asked), ErrSilent) {
		t.Error("a server that has responded is silent")
	}
}
