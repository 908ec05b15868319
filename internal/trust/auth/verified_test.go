package auth

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A token is kept for its time, at the resource where it was accepted, and not beyond its
// end. What is kept is bounded.
func TestVerifiedTokens(t *testing.T) {
	v, err := newVerifiedTokens()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	keep := func(token string, expires time.Duration) {
		id := &mcp.Identity{Principal: "ada", Expires: now.Add(expires)}
		id.SetToken(token)
		v.keep(verifiedToken{identity: id, resource: resource, most: maxKept}, now)
	}
	keep("long", time.Hour)
	keep("short", time.Minute)
	keep("over", -time.Second)
	keep(strings.Repeat("x", maxToken+1), time.Hour)
	for _, tt := range []struct {
		token, resource string
		after           time.Duration
		want            bool
	}{
		{"long", resource, maxKept - time.Second, true}, {"long", resource + "x", 0, false}, {"lon", resource, 0, false},
		{"short", resource, time.Minute - time.Second, true}, {"short", resource, time.Minute, false}, {"over", resource, 0, false},
		{strings.Repeat("x", maxToken+1), resource, 0, false}, {"long", resource, maxKept, false},
	} {
		if _, got := v.find(tt.token, tt.resource, now.Add(tt.after)); got != tt.want {
			t.Errorf("find(%.10q, %q) after %v = %v, want %v", tt.token, tt.resource, tt.after, got, tt.want)
		}
	}
	for n := range 2 * maxVerified {
		keep(fmt.Sprint("t", n), time.Hour)
	}
	if n := v.known.Len(); n != maxVerified {
		t.Errorf("%d tokens are kept, want %d", n, maxVerified)
	}
}

// What has expired takes no memory until others take its place.
func TestVerifiedTokensExpire(t *testing.T) {
	v, err := newVerifiedTokens()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for n := range 10 {
		id := &mcp.Identity{Principal: "ada", Expires: now.Add(time.Duration(n+1) * time.Second)}
		id.SetToken(fmt.Sprint("t", n))
		v.keep(verifiedToken{identity: id, resource: resource, most: maxKept}, now)
	}
	id := &mcp.Identity{Principal: "ada", Expires: now.Add(time.Hour)}
	id.SetToken("last")
	if v.keep(verifiedToken{identity: id, resource: resource, most: maxKept}, now.Add(7*time.Second)); v.known.Len() != 4 {
		t.Errorf("%d tokens are kept, want the three that have not expired, and the last", v.known.Len())
	}
}

// Tokens are the same if each of their bytes is.
func TestSame(t *testing.T) {
	const a = "abcdefghijklmnopqrstu"
	for i := range len(a) {
		b := []byte(a)
		b[i] ^= 0x80
		if same(a, string(b)) || same(string(b), a) || !same(string(b), string(b)) || same(a, a[:i]) {
			t.Errorf("same is wrong at %d of %d", i, len(a))
		}
	}
}
