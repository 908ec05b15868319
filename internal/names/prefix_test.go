package names

import "testing"

func TestG01Prefix(t *testing.T) {
	for server, want := range map[string]string{
		"files": "files", "a.b": "a-b", "a__b": "a_b", "a_____b": "a_b", "files_": "files", "a.__.b": "a-_-b",
		"0123456789012345678901234567": "012345678901234567890123", "01234567890123456789012_4": "01234567890123456789012",
	} {
		if got := Prefix(server); got != want || !IsPrefix(got) {
			t.Errorf("Prefix(%s) = %s, want %s", server, got, want)
		}
	}
	for _, text := range []string{"", "a__b", "a_", "_", "a.b", "é", "0123456789012345678901234"} {
		if IsPrefix(text) {
			t.Errorf("%q can be a prefix", text)
		}
	}
}
