package tasks

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// The list of tools is read when a call needs it, whole, and again once it has changed.
func TestM2L07ToolsAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{}
		c := newCall(t, ts)
		tools := NewTools()
		find := func(name string) Support {
			support, err := tools.Find(t.Context(), name, upstream.Pages(t.Context(), spec.MethodToolsList, c.Request))
			if err != nil {
				t.Error(err)
			}
			return support
		}
		for range 2 {
			for name, want := range map[string]Support{"t": Required, "either": Optional, "plain": Forbidden, "unknown": Forbidden} {
				if got := find(name); got != want {
					t.Errorf("Find(%q) = %v, want %v", name, got, want)
				}
			}
		}
		if n := ts.Pages(); n != 2 {
			t.Errorf("%d pages were read, want the 2 pages once", n)
		}
		tools.Forget()
		if _, known := tools.Lookup("t"); known {
			t.Error("a tool is known after Forget")
		}
		find("t")
		if n := ts.Pages(); n != 4 {
			t.Errorf("%d pages were read, want them again after Forget", n)
		}
	})
}

// A list that can't be read says nothing of any tool.
func TestM2L07ToolsThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCall(t, &legacytest.TaskServer{})
		c.End()
		tools := NewTools()
		_, err := tools.Find(t.Context(), "t", upstream.Pages(t.Context(), spec.MethodToolsList, c.Request))
		var f *upstream.Failure
		if !errors.As(err, &f) {
			t.Errorf("Find = %v, want the failure", err)
		}
		if _, known := tools.Lookup("t"); known {
			t.Error("a tool is known of a list that could not be read")
		}
	})
}
