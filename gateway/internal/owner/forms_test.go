package owner

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// Replicas of all versions find whose a task is by the same record.
func TestForms(t *testing.T) {
	forms, g := bridgetest.ReadForms(t), &Guard{server: "files"}
	forms.Want("key", g.recordOf(keyOfTask("task-1")))
	forms.Want("record", g.digestOf("ada"))
}
