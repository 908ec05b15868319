package auth

import (
	"fmt"
	"testing"
)

// BenchmarkAuthenticate is what a request costs more than an anonymous one. A small call
// takes about 60 µs of CPU.
func BenchmarkAuthenticate(b *testing.B) {
	e := endpoint(b, resource)
	for _, n := range []int{1, 100, MaxTokens} {
		b.Run(fmt.Sprintf("tokens=%d", n), func(b *testing.B) {
			var all []StaticToken
			for i := range n {
				all = append(all, StaticToken{Name: fmt.Sprint("client", i), Token: fmt.Sprintf("mcpb_%043d", i)})
			}
			tokens, err := NewTokens(all)
			if err != nil {
				b.Fatal(err)
			}
			r := sending(all[n/2].Token)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tokens.Authenticate(r, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	i, j := newJWT(b, nil)
	r := sending(i.Token(resource, nil))
	b.Run("jwt", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := j.Authenticate(r, e); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("jwt=new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			j.verified.known.Purge()
			if _, err := j.Authenticate(r, e); err != nil {
				b.Fatal(err)
			}
		}
	})
}
