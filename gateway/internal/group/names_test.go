package group

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

func TestG01NamesGoThereAndBack(t *testing.T) {
	r := newRig(t, nil, newFake("files", "read"), newFake("docs", "read"))
	for i, o := range r.opts.Members {
		shown := r.shown(i, policy.Tool, "read")
		if want := o.Prefix + "__read"; shown != want {
			t.Errorf("shown = %s, want %s", shown, want)
		}
		m, own, err := r.ownerOf(t.Context(), request(spec.MethodToolsCall, ""), policy.Tool, shown)
		if err != nil || m.Name != o.Name || own != "read" {
			t.Errorf("the owner of %s is %q, %q, %v", shown, m.Name, own, err)
		}
	}
}
