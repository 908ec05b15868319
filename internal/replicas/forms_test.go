package replicas

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// Replicas of all versions call a name the same, and choose the same replica for it.
func TestForms(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	forms.Want("key", Key("files/0123"))
	v := &View{Members: []Replica{{Instance: "AAAAAAAA"}, {Instance: "BBBBBBBB"}, {Instance: "CCCCCCCC"}, {Instance: "DDDDDDDD", Draining: true}}}
	var picks strings.Builder
	for _, name := range strings.Fields(forms.Text("names")) {
		picks.WriteByte(v.Pick(name).Instance[0])
	}
	forms.Want("picks", picks.String())
}
