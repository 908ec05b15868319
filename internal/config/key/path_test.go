package key

import "testing"

func TestPaths(t *testing.T) {
	path := Join("servers", "docs.example.com", "url")
	if got := Join("", "servers", "docs.example.com", "url"); got != path {
		t.Errorf("Join from the top = %q, want %q", got, path)
	}
	if got := Join(Parent(path), Base(path)); got != path {
		t.Errorf("Join(Parent, Base) = %q, want %q", got, path)
	}
	if got, want := Shown(path), "servers.docs.example.com.url"; got != want {
		t.Errorf("Shown = %q, want %q", got, want)
	}
	if got := Base(Parent(path)); got != "docs.example.com" {
		t.Errorf("Base(Parent) = %q: a dot in a name separates", got)
	}
	if Parent("servers") != "" || Base("servers") != "servers" || Join("servers") != "servers" {
		t.Error("a path of one name is not its own base, below the top")
	}
}
