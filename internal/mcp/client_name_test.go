package mcp

import (
	"strings"
	"testing"
)

func TestClientName(t *testing.T) {
	for info, want := range map[string]string{
		`{"name":"c","version":"1"}`: "c/1", `{"name":"c"}`: "c", `{"name":"c","version":""}`: "c", `{}`: "", `[]`: "",
		`{"name":"a\u002fb","version":"\u0031"}`: "a/b/1", `{"version":"2","name":7}`: "/2", `{"name":"c","name":"d","version":3}`: "c",
		`{"name":"` + strings.Repeat("x", 200) + `","version":"1"}`: strings.Repeat("x", maxClient-1) + "…",
	} {
		if got := ClientName([]byte(info)); got != want {
			t.Errorf("ClientName(%.40s) = %q, want %q", info, got, want)
		}
	}
}

// A client has its own name, whoever had its place before.
func TestClientNames(t *testing.T) {
	var c ClientNames
	for range 200 {
		for _, info := range []string{`{"name":"ide","version":"1"}`, `{"name":"ide","version":"2"}`, `{"name":"bot","version":"1"}`, ``, `{"name":"` + strings.Repeat("n", maxClientInfo) + `"}`} {
			if got, want := c.Of([]byte(info)), ClientName([]byte(info)); got != want {
				t.Fatalf("Of(%.40s) = %q, want %q", info, got, want)
			}
		}
	}
	info := []byte(`{"name":"alone","version":"1"}`)
	c = ClientNames{}
	c.Of(info)
	if n := testing.AllocsPerRun(100, func() { c.Of(info) }); n != 0 {
		t.Errorf("%v allocations for a name at hand", n)
	}
	for i := range c {
		if known := c[i].Load(); known != nil && len(known.info) > maxClientInfo {
			t.Errorf("%d bytes are kept", len(known.info))
		}
	}
}
