package policy

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// read returns the operation of a request, or fails.
func read(t *testing.T, method, params string) Operation {
	t.Helper()
	op, err := Read(method, []byte(params), nil)
	if err != nil {
		t.Fatalf("Read(%s, %s) = %v", method, params, err)
	}
	return op
}

func TestDecide(t *testing.T) {
	readers := []Rule{
		{Deny: true, Tools: []string{"*secret*"}},
		{Tools: []string{"read_*"}, Resources: []string{"file:///pub/*"}},
		{Prompts: []string{"greet"}, Methods: []string{"prompts/get"}},
		{Principals: []string{"root"}},
		{Scopes: []string{"admin", "write"}, Methods: []string{"tools/call"}},
		{Claims: map[string][]string{"groups": {"ops-*"}}, Tools: []string{"restart"}},
		{Methods: []string{"events/*"}},
	}
	p := New(false, readers)
	for _, tt := range []struct {
		name           string
		who            Caller
		method, params string
		want           Decision
	}{
		{"allowed by name", Caller{}, "tools/call", `{"name":"read_x"}`, Decision{Allowed: true, Rule: 2}},
		{"denied before", Caller{}, "tools/call", `{"name":"read_secret"}`, Decision{Rule: 1}},
		{"denied to all", Caller{Principal: "root"}, "tools/call", `{"name":"a_secret"}`, Decision{Rule: 1}},
		{"by default", Caller{}, "prompts/get", `{"name":"other"}`, Decision{}},
		{"by principal", Caller{Principal: "root"}, "tools/call", `{"name":"x"}`, Decision{Allowed: true, Rule: 4}},
		{"without scopes", Caller{Scopes: []string{"admin"}}, "tools/call", `{"name":"x"}`, Decision{Scopes: []string{"admin", "write"}}},
		{"with scopes", Caller{Scopes: []string{"write", "admin"}}, "tools/call", `{"name":"x"}`, Decision{Allowed: true, Rule: 5}},
		{"scopes do not help", Caller{}, "tools/call", `{"name":"secret"}`, Decision{Rule: 1}},
		{"by claim", Caller{Claims: map[string]json.RawMessage{"groups": []byte(`["x","ops-eu"]`)}}, "tools/call", `{"name":"restart"}`, Decision{Allowed: true, Rule: 6}},
		{"claim of another form", Caller{Claims: map[string]json.RawMessage{"groups": []byte(`{"ops-eu":1}`)}}, "tools/call", `{"name":"restart"}`, Decision{Scopes: []string{"admin", "write"}}},
		{"resource", Caller{}, "resources/read", `{"uri":"file:///pub/a/b"}`, Decision{Allowed: true, Rule: 2}},
		{"subscription", Caller{}, "resources/subscribe", `{"uri":"file:///pub/a"}`, Decision{Allowed: true, Rule: 2}},
		{"other resource", Caller{}, "resources/subscribe", `{"uri":"file:///etc"}`, Decision{}},
		{"method of the rule", Caller{}, "prompts/get", `{"name":"greet"}`, Decision{Allowed: true, Rule: 3}},
		{"method beside the rule", Caller{}, "completion/complete", `{"ref":{"type":"ref/prompt","name":"greet"}}`, Decision{}},
		{"completion of a resource", Caller{}, "completion/complete", `{"ref":{"type":"ref/resource","uri":"file:///pub/{x}"}}`, Decision{Allowed: true, Rule: 2}},
		{"completion of two", Caller{Principal: "root"}, "completion/complete", `{"ref":{"type":"ref/resource","name":"greet","uri":"file:///pub/{x}"}}`, Decision{Allowed: true, Rule: 2}},
		{"completion of two, one denied", Caller{}, "completion/complete", `{"ref":{"type":"ref/resource","name":"greet","uri":"file:///pub/{x}"}}`, Decision{}},
		{"list", Caller{}, "tools/list", `{}`, Decision{Allowed: true, Rule: 2}},
		{"list of which nothing is visible", Caller{}, "prompts/list", ``, Decision{Allowed: true}},
		{"listen", Caller{}, "subscriptions/listen", `{"notifications":{}}`, Decision{Allowed: true, Rule: 2}},
		{"task of a call", Caller{}, "tasks/get", `{"taskId":"x"}`, Decision{Allowed: true, Rule: 2}},
		{"extension", Caller{}, "events/stream", ``, Decision{Allowed: true, Rule: 7}},
		{"other extension", Caller{}, "other/stream", ``, Decision{}},
		{"handshake", Caller{}, "initialize", ``, Decision{Allowed: true}},
		{"unsubscribing", Caller{}, "resources/unsubscribe", `{"uri":"file:///etc"}`, Decision{Allowed: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			op := read(t, tt.method, tt.params)
			got := p.Decide(&tt.who, &op)
			if got.Allowed != tt.want.Allowed || got.Rule != tt.want.Rule || !slices.Equal(got.Scopes, tt.want.Scopes) {
				t.Errorf("Decide = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	p := New(false, []Rule{
		{Deny: true, Principals: []string{"bob"}},
		{Deny: true, Tools: []string{"x"}},
		{Principals: []string{"alice", "bob"}, Tools: []string{"a"}},
		{Scopes: []string{"mcp:use"}},
	})
	for _, tt := range []struct {
		who  Caller
		want bool
	}{
		{Caller{Principal: "alice"}, true},
		{Caller{Principal: "bob", Scopes: []string{"mcp:use"}}, false},
		{Caller{Principal: "carol"}, false},
		{Caller{Principal: "carol", Scopes: []string{"mcp:use"}}, true},
	} {
		if got := p.Open(&tt.who); got.Allowed != tt.want {
			t.Errorf("Open(%+v) = %+v, want %v", tt.who, got, tt.want)
		}
	}
	if got := p.Open(&Caller{Principal: "carol"}); !slices.Equal(got.Scopes, []string{"mcp:use"}) {
		t.Errorf("Open = %+v, want the scope that is missing", got)
	}
	if !New(true, nil).Open(&Caller{}).Allowed {
		t.Error("a policy without rules that allows by default opens to nobody")
	}
}

func TestVisible(t *testing.T) {
	p := New(false, []Rule{{Tools: []string{"read_*"}, Resources: []string{"file:///pub/*"}, Principals: []string{"ada"}}})
	for _, tt := range []struct {
		list, element string
		want          bool
	}{
		{spec.MethodToolsList, `{"name":"read_x"}`, true},
		{spec.MethodToolsList, `{"n\u0061me":"re\u0061d_x"}`, true},
		{spec.MethodToolsList, `{"name":"write"}`, false},
		{spec.MethodToolsList, `{"title":"read_x"}`, false},
		{spec.MethodToolsList, `{"name":["read_x"]}`, false},
		{spec.MethodToolsList, `"read_x"`, false},
		{spec.MethodResourcesList, `{"uri":"file:///pub/x","name":"n"}`, true},
		{spec.MethodResourcesList, `{"uri":"file:///etc/x","name":"read_x"}`, false},
		{spec.MethodResourcesTemplates, `{"uriTemplate":"file:///pub/{x}"}`, true},
		{spec.MethodResourcesTemplates, `{"uriTemplate":"file:///{x}"}`, false},
		{spec.MethodPromptsList, `{"name":"read_x"}`, false},
	} {
		op := read(t, tt.list, `{}`)
		if got := p.Visible(&Caller{Principal: "ada"}, &op, []byte(tt.element)); got != tt.want {
			t.Errorf("Visible(%s, %s) = %v, want %v", tt.list, tt.element, got, tt.want)
		}
		if p.Visible(&Caller{Principal: "eve"}, &op, []byte(tt.element)) {
			t.Errorf("Visible(%s, %s) = true for another principal", tt.list, tt.element)
		}
	}
}

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"", "", true}, {"*", "", true}, {"*", "x", true},
		{"a*", "abc", true}, {"*c", "abc", true}, {"a*c", "ac", true}, {"a*c", "abd", false},
		{"a*b*c", "axxbyyc", true}, {"a*b*c", "axxcyyb", false}, {"ab*ba", "aba", false}, {"a**b", "ab", true},
		{"a?c", "abc", false}, {"[a]", "a", false}, {"*aa*aa*", "aaa", false}, {"*aa*aa*", "aaaa", true},
	} {
		p := compile(tt.pattern)
		if got := p.match(tt.text); got != tt.want {
			t.Errorf("%q matches %q = %v, want %v", tt.pattern, tt.text, got, tt.want)
		}
	}
}

func TestClaimNames(t *testing.T) {
	got := ClaimNames([]Rule{{Claims: map[string][]string{"b": nil, "a": nil}}, {}, {Claims: map[string][]string{"a": nil}}})
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("ClaimNames = %v", got)
	}
}
