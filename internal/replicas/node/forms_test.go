package node

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// Replicas of all versions derive the same keys of requestStates.
func TestForms(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	keys, err := StateKeys([]string{"a key of sixteen characters and more"})
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	forms.Want("state-key", keys[0])
}
