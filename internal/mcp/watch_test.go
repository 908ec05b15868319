package mcp

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

func TestChangesHaveANotification(t *testing.T) {
	for k := fanout.Kind(1); k.Valid(); k++ {
		if got, ok := ChangeKind(ChangeMethod(k)); k != fanout.StateLost && (!ok || got != k) {
			t.Errorf("ChangeKind(%q) = %v, %v, want %v", ChangeMethod(k), got, ok, k)
		}
		one := Filter{}.Narrow([]fanout.Topic{{Kind: k}})
		all := Filter{Tools: true, Prompts: true, Resources: true, URIs: []string{"a"}, Losses: true}
		if one.Has(k) || !all.Has(k) {
			t.Errorf("Has(%v) = %v of no topics, %v of all", k, one.Has(k), all.Has(k))
		}
		if topics := all.Topics("s"); !all.Narrow(topics).Has(k) || len(topics) != 5 {
			t.Errorf("%v narrowed to themselves have no %v", topics, k)
		}
	}
	for _, method := range []string{"", "notifications/message"} {
		if k, ok := ChangeKind(method); ok {
			t.Errorf("ChangeKind(%q) = %v, want none", method, k)
		}
	}
}
