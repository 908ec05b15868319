package protocol

import (
	"fmt"
	"testing"
)

const (
	regionTool = `{"name":"query","inputSchema":{"properties":{"region":{"x-mcp-header":"region"},"deep":{"properties":{"n":{"x-mcp-header":"N"}}}}}}`
	plainTool  = `{"name":"query","inputSchema":{}}`
)

func TestL2M11LearntSchemas(t *testing.T) {
	c, err := NewSchemaCache()
	if err != nil {
		t.Fatal(err)
	}
	want := func(when, scope, mirrors string) {
		t.Helper()
		if got := fmt.Sprint(c.Mirrors(scope, "query")); got != mirrors || c.Knows(scope, "query") != (mirrors != "[]") {
			t.Errorf("%s: Mirrors = %s, want %s", when, got, mirrors)
		}
	}
	const learnt = "[{Mcp-Param-Region [region]} {Mcp-Param-N [deep n]}]"
	c.Learn("a", []byte("["+plainTool+"]"))
	if !c.Empty() {
		t.Error("a tool without headers is stored")
	}
	c.Learn("a", []byte("["+regionTool+"]"))
	c.Learn("b", []byte("["+regionTool+"]"))
	want("listed", "a", learnt)
	want("not listed", "c", "[]")
	c.Learn("a", []byte("["+plainTool+"]"))
	want("listed without them", "a", "[]")
	want("another's list", "b", learnt)
	c.Forget("a")
	want("another's was forgotten", "b", learnt)
	c.Forget("b")
	want("forgotten", "b", "[]")
}

func TestL2M10Numbers(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"42", "42"},
		{"42.0", "42"},
		{"-0.50", "-1/2"},
		{"9007199254740993", "9007199254740993"},
		{"1e9", ""}, // not expanded
		{"1E999999999", ""},
		{"042", ""},
		{"x", ""},
		{"", ""},
		{"1" + fmt.Sprintf("%064d", 0), ""},
	} {
		got := ""
		if n, ok := ParseNumber(tt.in); ok {
			got = n.RatString()
		}
		if got != tt.want {
			t.Errorf("ParseNumber(%s) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
