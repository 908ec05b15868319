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

// While a token is exchanged its name has two, and both are the same principal's. What is
// wrong with a token names who has it.
func TestTokensOfOneName(t *testing.T) {
	before, after := StaticToken{Name: "ada", Token: "token-until-now"}, StaticToken{Name: "ada", Token: "token-from-now-on"}
	tokens, err := NewTokens([]StaticToken{before, after})
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []StaticToken{before, after} {
		if id, err := tokens.Authenticate(sending(each.Token), nil); err != nil || id.Principal != "ada" {
			t.Errorf("%s is %+v, %v, want ada's", each.Token, id, err)
		}
	}
	if err := tokens.Replace([]StaticToken{after}); err != nil {
		t.Fatal(err)
	}
	if id, err := tokens.Authenticate(sending(before.Token), nil); err == nil {
		t.Errorf("the token that was removed is %s's", id.Principal)
	}
	for want, all := range map[string][]StaticToken{
		"token of eve: ada has the same; a token says who sends it, so give each name one of its own": {before, {Name: "eve", Token: before.Token}},
		"token of ada: it is there twice; remove one":                                                 {before, before},
	} {
		if _, err := NewTokens(all); err == nil || err.Error() != want {
			t.Errorf("NewTokens() = %v, want %s", err, want)
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
