package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	token, digest := GenerateToken()
	tokens, err := NewTokens([]StaticToken{{Name: "ada", Token: "correct-horse-battery", Scopes: []string{"x"}}, {Name: "bob", SHA256: strings.ToUpper(digest)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ token, want string }{
		{"correct-horse-battery", "ada"}, {token, "bob"}, {digest, ""}, {"correct-horse-batter", ""}, {"correct-horse-battery0", ""}, {"x", ""},
	} {
		id, err := tokens.Authenticate(sending(tt.token), nil)
		switch {
		case tt.want == "" && err == nil:
			t.Errorf("%q is %s's, want nobody's", tt.token, id.Principal)
		case tt.want != "" && (err != nil || string(id.Principal) != tt.want || id.Token() != ""):
			t.Errorf("%q = %+v, %v, want %s", tt.token, id, err, tt.want)
		}
	}
}

// What would let in somebody else than was meant is refused.
func TestNewTokensRefuses(t *testing.T) {
	empty := sha256.Sum256(nil)
	for name, all := range map[string][]StaticToken{
		"none":              nil,
		"anonymous":         {{Name: "anonymous", Token: "t"}},
		"nobody":            {{Token: "t"}},
		"empty":             {{Name: "a"}},
		"of nothing":        {{Name: "a", SHA256: hex.EncodeToString(empty[:])}},
		"short digest":      {{Name: "a", SHA256: "00"}},
		"both":              {{Name: "a", Token: "t", SHA256: strings.Repeat("0", 64)}},
		"two of one":        {{Name: "a", Token: "t"}, {Name: "b", Token: "t"}},
		"one in two ways":   {{Name: "a", Token: "test"}, {Name: "b", SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}},
		"more than maximum": make([]StaticToken, MaxTokens+1),
	} {
		if _, err := NewTokens(all); err == nil || strings.Contains(err.Error(), "test") {
			t.Errorf("%s: NewTokens() = %v, want an error without the token", name, err)
		}
	}
}
