package router

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A client of either era has what servers of both eras have.
func TestG11CallsReachMembersOfBothEras(t *testing.T) {
	t.Parallel()
	r := newGroupRig(t, nil)
	for _, era := range bothEras {
		t.Run(era.String(), func(t *testing.T) {
			v := r.visit(t, era, "all")
			if got := v.ask(spec.MethodToolsList, "", ""); !strings.Contains(got.body, `"name":"old__a"`) || !strings.Contains(got.body, `"name":"new__n`) {
				t.Errorf("tools/list = %d %s", got.status, got.body)
			}
			if got := v.call("old__a", ""); !strings.Contains(got.body, "of old") {
				t.Errorf("a call of the legacy member = %d %s", got.status, got.body)
			}
			if got := v.call("new__x", ""); !strings.Contains(got.body, "called") {
				t.Errorf("a call of the modern member = %d %s", got.status, got.body)
			}
		})
	}
}
