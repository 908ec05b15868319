package key

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"args", "cache", "drain", "era", "keep_alive", "limits", "listen", "servers", "tls", "url", "write_timeout"}
	for _, tt := range []struct{ word, near string }{
		{"lisetn", "listen"}, {"keepalive", "keep_alive"}, {"write-timeout", "write_timeout"}, {"ear", "era"}, {"server", "servers"},
	} {
		if got, ok := Nearest(tt.word, known); !ok || got != tt.near {
			t.Errorf("Nearest(%q) = %q, %v, want %q", tt.word, got, ok, tt.near)
		}
	}
	if got, ok := Nearest("banana", known); ok {
		t.Errorf("Nearest(%q) = %q, want none", "banana", got)
	}
	if got, want := Suggest("banana", []string{"a", "b"}), "known here: a, b"; got != want {
		t.Errorf("Suggest = %q, want %q", got, want)
	}
}
