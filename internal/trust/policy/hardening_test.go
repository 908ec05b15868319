package policy

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Servers in some languages take members whatever their case, of two with one name the
// last, and other values as text: what was decided on would not be what is done.
func TestOddRequestsAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, method, params, extra string }{
		{"name in another case", "tools/call", `{"name":"ok","Name":"secret"}`, ""},
		{"name in another case, escaped", "tools/call", `{"name":"ok","\u004eame":"secret"}`, ""},
		{"uri in another case", "resources/read", `{"uri":"file:///ok","URI":"file:///secret"}`, ""},
		{"another case alone", "tools/call", `{"NAME":"secret"}`, ""},
		{"no name", "tools/call", `{}`, ""},
		{"no params", "tools/call", ``, ""},
		{"a list of names", "tools/call", `{"name":["secret"]}`, ""},
		{"a number", "prompts/get", `{"name":1}`, ""},
		{"twice", "tools/call", `{"name":"ok","name":"secret"}`, ""},
		{"twice, escaped", "tools/call", `{"name":"ok","n\u0061me":"secret"}`, ""},
		{"ref twice", "completion/complete", `{"ref":{"type":"ref/prompt","name":"ok","name":"secret"}}`, ""},
		{"ref in another case", "completion/complete", `{"ref":{"type":"ref/prompt","name":"ok","Name":"secret"}}`, ""},
		{"two refs", "completion/complete", `{"ref":{"name":"ok"},"Ref":{"name":"secret"}}`, ""},
		{"ref of a list", "completion/complete", `{"ref":["x"]}`, ""},
		{"filter twice", "subscriptions/listen", `{"notifications":{"resourceSubscriptions":[],"resourceSubscriptions":["file:///secret"]}}`, ""},
		{"filter in another case", "subscriptions/listen", `{"notifications":{"ReſourceSubscriptions":["file:///secret"]}}`, ""},
		{"method in another case", "Tools/Call", `{"name":"secret"}`, ""},
		{"method with a letter that folds", "taſks/get", `{}`, ""},
		{"method with a space", "tools/call ", `{"name":"secret"}`, ""},
		{"method with a zero", "tools/call\x00", `{"name":"secret"}`, ""},
		{"envelope with another method", "ping", ``, `"Method":"tools/call","Params":{"name":"secret"}`},
		{"envelope with other params", "tools/call", `{"name":"ok"}`, `"PARAMS":{"name":"secret"}`},
		{"zero in a name", "tools/call", `{"name":"ok\u0000secret"}`, ""},
		{"newline in a URI", "resources/read", `{"uri":"file:///ok\nfile:///secret"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(tt.method, []byte(tt.params), []byte(tt.extra))
			if odd := (*AmbiguousError)(nil); !errors.As(err, &odd) {
				t.Errorf("Read = %v, want an AmbiguousError", err)
			}
		})
	}
}

// What only looks odd is not refused.
func TestPlainRequestsAreRead(t *testing.T) {
	for _, tt := range []struct{ method, params, extra, kind, name string }{
		{"tools/call", `{"name":"a","arguments":{"Name":"b","name":"c"}}`, `"x":1`, "tool", "a"},
		{"tools/call", `{"n\u0061me":"\u0061"}`, ``, "tool", "a"},
		{"resources/read", `{"uri":"file:///\u00e4?x=1"}`, ``, "resource", "file:///ä?x=1"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"q"}}`, ``, "prompt", "p"},
		{"events/list", `{"name":"a","Name":"b"}`, ``, "", ""},
		{"tools/list", `{"cursor":"x"}`, ``, "", ""},
	} {
		op, err := Read(tt.method, []byte(tt.params), []byte(tt.extra))
		if k, n := op.About(); err != nil || k.String() != tt.kind || n != tt.name {
			t.Errorf("Read(%s, %s) = %v %q, %v, want %s %q", tt.method, tt.params, k, n, err, tt.kind, tt.name)
		}
	}
}

// A server that resolves dots, percent signs or case must not be brought to what the
// text does not name.
func TestURIsAreDecidedInNormalForm(t *testing.T) {
	allowed := New(false, []Rule{{Resources: []string{"file:///pub/*", "https://h.example/a%20b/*", "note:x*"}}})
	denied := New(true, []Rule{{Deny: true, Resources: []string{"file:///secret/*", "file:///one", "https://h.example/s"}}})
	for _, tt := range []struct {
		uri       string
		allowed   bool // by what allows a few
		notDenied bool // by what denies a few
	}{
		{"file:///pub/x", true, true},
		{"file:///pub/a/b?q=1", true, true},
		{"file:///pub/", true, true},
		{"file:///public", false, true},
		{"file:///pub/../secret/x", false, false},
		{"file:///pub/..%2fsecret/x", false, false},
		{"file:///pub/%2e%2e/secret/x", false, false},
		{"file:///pub/%252e%252e/secret/x", false, false},
		{"file:///pub/%zz/%2e%2e/%2e%2e/secret/x", false, false},
		{`file:///pub/..\secret/x`, false, false},
		{"file:///pub//x", true, true},
		{"file:///pub/./x", true, true},
		{"file:///%70ub/x", false, true}, // written otherwise than allowed
		{"file:///secret/x", false, false},
		{"FILE:///secret/x", false, false},
		{"file:///SECRET/x", false, false},
		{"file://localhost/secret/x", false, false},
		{"file:////secret/x", false, false},
		{"file:///%73ecret/x", false, false},
		{" file:///secret/x", false, false},
		{"file:///one", false, false},
		{"file:///one#part", false, false},
		{"file:///one?part", false, false},
		{"file:///one/", false, false},
		{"https://h.example/a%20b/c", true, true},
		{"https://H.example/s", false, false},
		{"https://h.example:443/s", false, false},
		{"https://ada@h.example/s", false, false},
		{"https://h.example./s", false, false},
		{"note:x", true, true},
		{"note:x/../y", false, true},
	} {
		op := read(t, "resources/read", `{"uri":`+quote(tt.uri)+`}`)
		if got := allowed.Decide(&Caller{}, &op).Allowed; got != tt.allowed {
			t.Errorf("%q is allowed by what allows a few: %v, want %v", tt.uri, got, tt.allowed)
		}
		if got := denied.Decide(&Caller{}, &op).Allowed; got != tt.notDenied {
			t.Errorf("%q is allowed by what denies a few: %v, want %v", tt.uri, got, tt.notDenied)
		}
	}
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Names that differ only in case or in white space at the ends are one to some servers.
func TestDeniedNamesWhateverTheirCase(t *testing.T) {
	p := New(true, []Rule{{Deny: true, Tools: []string{"Delete_*"}}})
	for name, want := range map[string]bool{"delete_x": false, "DELETE_x": false, " delete_x": false, "undelete": true} {
		op := read(t, "tools/call", `{"name":`+quote(name)+`}`)
		if got := p.Decide(&Caller{}, &op).Allowed; got != want {
			t.Errorf("%q is allowed: %v, want %v", name, got, want)
		}
	}
	strict := New(false, []Rule{{Tools: []string{"read_*"}}})
	op := read(t, "tools/call", `{"name":"READ_x"}`)
	if strict.Decide(&Caller{}, &op).Allowed {
		t.Error("READ_x is allowed, want only what is written as in the rule")
	}
}

// A caller that invents names must not make matching slow: no pattern backtracks.
func TestPatternsDoNotBacktrack(t *testing.T) {
	p := compile(strings.Repeat("*a", 50) + "b")
	if p.match(strings.Repeat("a", 8<<10)) {
		t.Error("it matches")
	}
}

// What is known of a message since it was parsed makes reading it faster, and nothing else:
// what was not known to be plain is read as before.
func TestReadParsedIsRead(t *testing.T) {
	for _, params := range []string{
		`{"name":"a"}`, `{"arguments":{"Name":"x"},"name":"a b","_meta":{}}`, `{"name":"A_\u0062"}`, `{"name":"ok","Name":"secret"}`, `{"name":"ok","\u004eame":"secret"}`,
		`{"NAME":"secret"}`, `{"name":["a"]}`, `{"name":1}`, `{}`, `{"name":""}`, `{"name":"a\u0000"}`, `{"name":"Straße"}`, `{"naMe":1,"b":2,"name":"a"}`,
	} {
		m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`), wire.Options{UniqueParams: true})
		if err != nil {
			t.Fatal(err)
		}
		want, wantErr := Read(m.Method, []byte(params), nil)
		got, err := ReadParsed(m.Method, m.Params, m.Extra, m.Plain)
		if !reflect.DeepEqual(got, want) || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("ReadParsed(%s) = %+v, %v, want %+v, %v", params, got, err, want, wantErr)
		}
	}
}
