package value

import (
	"net/url"
	"strings"
	"testing"
)

func TestForms(t *testing.T) {
	for _, tt := range []struct {
		name   string
		is     func(string) bool
		ok, no []string
	}{
		{"IsPort", IsPort, []string{"0", "2526", "65535"}, []string{"", "65536", "-1", "http"}},
		{"Loopback", Loopback, []string{"localhost", "127.0.0.7", "::1", "::ffff:127.0.0.1"}, []string{"", "0.0.0.0", "::", "10.0.0.1", "localhost.example.com"}},
		{"IsHost", IsHost, []string{"mcp.example.com", "10.0.0.1", "::1"}, []string{"", "a:1", "https://a", "*.a", "u@a", "a b"}},
		{"IsServerName", IsServerName, []string{"a", "mcp.internal.example", "10.0.0.1", strings.Repeat("a", 253)}, []string{"", "-a", "a-", "a_b", "a:1", strings.Repeat("a", 254)}},
		{"IsPrincipal", IsPrincipal, []string{"a", "ann@example.com", strings.Repeat("a", 128)}, []string{"", "-a", "anonymous", "a b", strings.Repeat("a", 129)}},
		{"IsPrintable", IsPrintable, []string{"", "a/b?c"}, []string{"a b", "a\n", "ä"}},
		{"Private", private, []string{"https://a", "http://localhost:1", "http://[::1]"}, []string{"http://a", "ws://localhost", "a"}},
		{"Network", isNetwork, []string{"10.0.0.0/8", "192.0.2.7", "fd00::/8"}, []string{"", "a", "10.0.0.0/33", "fe80::1%eth0"}},
	} {
		for _, text := range tt.ok {
			if !tt.is(text) {
				t.Errorf("%s(%q) = false", tt.name, text)
			}
		}
		for _, text := range tt.no {
			if tt.is(text) {
				t.Errorf("%s(%q) = true", tt.name, text)
			}
		}
	}
}

func private(text string) bool {
	u, err := url.Parse(text)
	return err == nil && Private(u)
}

func isNetwork(text string) bool {
	_, err := Network(text)
	return err == nil
}
