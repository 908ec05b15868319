package front

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/limits"
)

// A session that follows ever more resources would hold ever more memory (CWE-770).
func TestSubscriptionsOfASessionAreBounded(t *testing.T) {
	st := newRig(t, func(o *Options) { o.Limits = limits.Set{"listen_topics": 2} })
	g := st.Enter(t, "2025-11-25")
	for _, uri := range []string{"note://a", "note://b", "note://a"} {
		if r := g.Call(t, "resources/subscribe", `{"uri":"`+uri+`"}`); r.Code() != 0 {
			t.Fatalf("subscribe to %s = %s", uri, r.Body)
		}
	}
	if r := g.Call(t, "resources/subscribe", `{"uri":"note://c"}`); r.Code() != -32602 || !strings.Contains(r.Body, "limits.listen_topics") {
		t.Errorf("subscribe to one more = %s, want an error that names limits.listen_topics", r.Body)
	}
	g.Call(t, "resources/unsubscribe", `{"uri":"note://a"}`)
	if r := g.Call(t, "resources/subscribe", `{"uri":"note://c"}`); r.Code() != 0 {
		t.Errorf("subscribe in the place of another = %s", r.Body)
	}
}
