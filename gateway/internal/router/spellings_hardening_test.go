package router

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// spelled are other spellings of URIs that deniedElsewhere denies, by which they were reached.
var spelled = []string{
	"file:/vault/key", "file:vault/key", "file:/pub/../vault/key", `file:\\\vault\key`, "file://x/vault/key", "file:///pub/%252e%252e/../vault/key",
	"https:/h.example/vault/key", "https:h.example/vault/key", "https://h.example:0443/vault/key", "https://h。example/vault/key", "HTTPS://u@h.example/a/../vault/key",
}

// deniedElsewhere allows all but two places.
func deniedElsewhere() *policy.Policy {
	return policy.New(true, []policy.Rule{{Deny: true, Resources: []string{"file:///vault/*", "https://h.example/vault/*"}}})
}

// A URI that a server would take for a denied one is not read, listed or followed, whichever
// way it comes.
func TestHardeningSpellingsAtEveryDoor(t *testing.T) {
	t.Parallel()
	resources := []string{`{"uri":"file:///pub/open","name":"n"}`}
	for _, uri := range spelled {
		text, _ := json.Marshal(uri)
		resources = append(resources, `{"uri":`+string(text)+`,"name":"n"}`)
	}
	list := `{"resources":[` + strings.Join(resources, ",") + `]}`
	for _, peer := range policyPeers {
		for _, d := range doors {
			t.Run(d.name+" to a "+peer.name, func(t *testing.T) {
				r, sent := peer.rig(t, guarded(deniedElsewhere()))
				ask := d.open(t, r)
				for _, uri := range spelled {
					text, _ := json.Marshal(uri)
					for _, method := range []string{"resources/read", "resources/subscribe"} {
						if d.modern && method == "resources/subscribe" {
							continue // a listen stream does so
						}
						if got := ask(d.request(method, `"uri":`+string(text))); !strings.Contains(got, "policy of server") {
							t.Errorf("%s of %s = %s, want it refused", method, uri, got)
						}
					}
				}
				if got := ask(d.request("resources/read", `"uri":"file:///pub/open"`)); !strings.Contains(got, `"contents":[]`) {
					t.Errorf("what is allowed: %s", got)
				}
				if got := sent(); strings.Contains(got, "vault") || !strings.Contains(got, "pub/open") {
					t.Errorf("the server was sent what is denied:\n%s", got)
				}
			})
		}
	}
	t.Run("lists", func(t *testing.T) {
		r := newRig(t, guarded(deniedElsewhere()))
		r.peer.answer("resources/list", list)
		for _, d := range []*door{&doors[0], &doors[3]} {
			if got := d.open(t, r)(d.request("resources/list", "")); strings.Contains(got, "vault") || !strings.Contains(got, "pub/open") {
				t.Errorf("%s: the list = %s", d.name, got)
			}
		}
	})
	t.Run("listen streams", func(t *testing.T) {
		all, _ := json.Marshal(append([]string{"file:///pub/open"}, spelled...))
		r := newRig(t, guarded(deniedElsewhere()))
		f := r.listen(t, "1", `{"toolsListChanged":true,"resourceSubscriptions":`+string(all)+`}`)
		if ack := f.next(); strings.Contains(ack, "vault") || !strings.Contains(ack, "file:///pub/open") {
			t.Errorf("acknowledged %s", ack)
		}
		r.eventually(t, "the server is subscribed to", func() bool { return len(r.peer.sent("resources/subscribe")) == 1 })
	})
}
