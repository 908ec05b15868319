package policy

import (
	"fmt"
	"testing"
)

// BenchmarkDecide is what a policy costs a call, by the number of rules before the one
// that matches.
func BenchmarkDecide(b *testing.B) {
	params := []byte(`{"name":"read_file","arguments":{"path":"/a/b/c","lines":12},"_meta":{"progressToken":7}}`)
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			var rules []Rule
			for i := range n - 1 {
				rules = append(rules, Rule{Deny: true, Tools: []string{fmt.Sprintf("delete_%d_*", i)}})
			}
			p := New(false, append(rules, Rule{Principals: []string{"https://id.example.com *"}, Scopes: []string{"files"}, Tools: []string{"list_*", "read_*"}}))
			c := &Caller{Principal: "https://id.example.com ada", Scopes: []string{"mcp:use", "files"}}
			b.ReportAllocs()
			for b.Loop() {
				op, err := Read("tools/call", params, nil)
				if err != nil || !p.Decide(c, &op).Allowed {
					b.Fatal("refused")
				}
			}
		})
	}
}

// BenchmarkVisible is what a list costs for each of its elements.
func BenchmarkVisible(b *testing.B) {
	p := New(false, []Rule{{Deny: true, Tools: []string{"delete_*"}}, {Tools: []string{"list_*", "read_*"}}})
	c := &Caller{Principal: "ada"}
	op, _ := Read("tools/list", nil, nil)
	element := []byte(`{"name":"read_file","description":"Reads a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if !p.Visible(c, &op, element) {
			b.Fatal("hidden")
		}
	}
}

// BenchmarkTake is what rates cost a call.
func BenchmarkTake(b *testing.B) {
	l := NewLimiter(Rates{Principal: Rate{PerSecond: 1e9, Burst: 1e9, Concurrent: 1000}, Server: Rate{PerSecond: 1e9, Burst: 1e9}, Tools: map[string]Rate{"read_file": {Concurrent: 1000}}})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ticket, err := l.Take(share("ada"), "read_file")
			if err != nil {
				b.Error(err)
				return
			}
			ticket.Give()
		}
	})
}
