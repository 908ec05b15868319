package node

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// While TLS is introduced, or removed, replicas with and without it reach each other through those
// that accept both; those that don't are no replicas to each other.
func TestTLSInSteps(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 4)
	o := Options{Peers: "dns://" + strings.Join(addrs, ","), Keys: []string{"0123456789abcdef"}}
	before, between, after := o, o, o
	store := materialStore(t, "replicas.example")
	after.ServerTLS, after.ClientTLS, after.Trusts = store.Server(true), store.Client("replicas.example"), store.Trusts
	between = after
	between.Plaintext = true
	var all []*Node
	for i, o := range []Options{before, between, between, after} {
		o.Listen = addrs[i]
		all = append(all, joinAs(t, o))
	}
	bridgetest.Eventually(t, "those that accept both know all, and the others each other's", func() bool {
		return members(all[0]) == 3 && members(all[1]) == 4 && members(all[2]) == 4 && members(all[3]) == 3
	})
	for i, from := range all {
		for _, to := range from.Engine().View().Members {
			if to.Instance == from.Group().Self().Instance {
				continue
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, from.Group().URL(to, "/x"), strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			wantTLS := i > 0 && to.Addr != addrs[0]
			if got := r.URL.Scheme == "https"; got != wantTLS {
				t.Errorf("%d reaches %s by %s", i, to.Addr, r.URL)
			}
			resp, err := from.Group().RoundTripper(to, nil).RoundTrip(r)
			if err != nil {
				t.Errorf("from %d to %s: %v", i, to.Addr, err)
				continue
			}
			if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), to.Instance) {
				t.Errorf("from %d to %s: %s %q, %v", i, to.Addr, resp.Status, text, err)
			}
			_ = resp.Body.Close()
		}
	}
}
