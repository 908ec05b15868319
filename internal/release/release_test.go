package release

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	for _, tt := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"go install", debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3"}}, "v1.2.3"},
		{"inside of another program", debug.BuildInfo{Main: debug.Module{Path: "example.com/a", Version: "v9.0.0"}, Deps: []*debug.Module{{Path: module, Version: "v1.2.3"}}}, "v1.2.3"},
		{"nothing is noted", debug.BuildInfo{Main: debug.Module{Path: "example.com/a", Version: "v9.0.0"}}, ""},
	} {
		if got := noted(&tt.info); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := Version(); got == "" {
		t.Error("no version")
	}
	stamped = "v4.5.6"
	defer func() { stamped = "" }()
	if got := Version(); got != "v4.5.6" {
		t.Errorf("Version of a stamped build = %q", got)
	}
}
