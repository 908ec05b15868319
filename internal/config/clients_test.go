package config

import (
	"errors"
	"testing"
)

// A token is made where nothing was said, and never where somebody has said none.
func TestMakeToken(t *testing.T) {
	for _, tt := range []struct {
		in   string
		made bool
		err  bool
	}{
		{"listen: ':1'\n" + notebook, true, false},
		{"listen: 127.0.0.1:1\n" + notebook, false, false},
		{"listen: ':1'\nallow_anonymous: true\n" + notebook, false, false},
		{"listen: ':1'\nauth: none\n" + notebook, false, true},
		{"listen: ':1'\nservers: {a: {builtin: notebook}, b: {builtin: notebook, auth: none}}\n", false, true},
		{"listen: ':1'\nservers: {a: {builtin: notebook}, b: {builtin: notebook, auth: none, disabled: true}}\n", true, false},
		{"listen: ':1'\nservers: {a: {builtin: notebook, auth: {tokens: [{name: a, token: 0123456789abcdef}]}}}\n", false, false},
	} {
		c, _, err := Load(Options{Path: write(t, tt.in), MayMakeToken: true})
		if problems := (*Error)(nil); errors.As(err, &problems) != tt.err || !tt.err && c.MakeToken != tt.made {
			t.Errorf("Load(%q) = %+v, %v, want a token made: %v", tt.in, c, err, tt.made)
		}
	}
}
