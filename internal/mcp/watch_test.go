package mcp

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

func TestChangesHaveANotification(t *testing.T) {
	for k := fanout.Kind(1); k.Valid(); k++ {
		if got, ok := ChangeKind(ChangeMethod(k)); !ok || got != k {
			t.Errorf("ChangeKind(%q) = %v, %v, want %v", ChangeMethod(k), got, ok, k)
		}
		one := Filter{}.Narrow([]fanout.Topic{{Kind: k}})
		all := Filter{Tools: true, Prompts: true, Resources: true, URIs: []string{"a"}}
		if one.Has(k) || !all.Has(k) {
			t.Errorf("Has(%v) = %v of no topics, %v of all", k, one.Has(k), all.Has(k))
		}
	}
	for _, method := range []string{"", "notifications/message"} {
		if k, ok := ChangeKind(method); ok {
			t.Errorf("ChangeKind(%q) = %v, want none", method, k)
		}
	}
}
