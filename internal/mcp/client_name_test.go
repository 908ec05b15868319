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
