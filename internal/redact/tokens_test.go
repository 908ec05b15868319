package redact

import (
	"fmt"
	"slices"
	"testing"
)

// A token is hidden while somebody uses it, and for some time after it was replaced.
func TestReplace(t *testing.T) {
	r := New("configured")
	hides := func(s string) bool {
		t.Helper()
		got := r.String("of " + s + " and configured.")
		if got != "of "+Hidden+" and "+Hidden+"." && got != "of "+s+" and "+Hidden+"." {
			t.Fatalf("String = %q", got)
		}
		return got == "of "+Hidden+" and "+Hidden+"."
	}
	r.Replace(nil, "token-one", "short")
	r.Replace(nil, "token-one") // of another user
	r.Replace([]string{"token-one"}, "token-two")
	if !hides("token-one") || !hides("token-two") || hides("short") || hides("token-three") {
		t.Error("a token that is in use is shown, or another text is hidden")
	}
	r.Replace([]string{"token-two"}, "token-2-0")
	if !hides("token-two") {
		t.Error("a token is shown as soon as it was replaced: an error may still have it")
	}
	for n := range maxReplaced {
		r.Replace([]string{fmt.Sprint("token-2-", n)}, fmt.Sprint("token-2-", n+1))
	}
	if hides("token-two") || !hides("token-one") || !hides(fmt.Sprint("token-2-", maxReplaced)) {
		t.Error("a token that was replaced long ago is still kept, or one in use is not")
	}
	if n := len(r.tokens.held); n > maxReplaced+2 {
		t.Errorf("%d tokens are kept, want what is in use and %d", n, maxReplaced)
	}
	r.Replace(nil, "token-2-3", "a/token of?four")
	if !hides("token-2-3") || !hides("a%2Ftoken+of%3Ffour") {
		t.Error("a form of a token is shown, or one that is in use again")
	}
}

// However many tokens are in use, all are hidden; of those that nobody uses any more, some.
func TestAllTokensInUseAreHidden(t *testing.T) {
	r := new(Redactor)
	var tokens []string
	for n := range 5000 {
		tokens = append(tokens, fmt.Sprintf("%04d-token", n))
	}
	for some := range slices.Chunk(tokens, 100) {
		r.Replace(nil, some...)
	}
	for _, s := range tokens {
		if got := r.String(s + "."); got != Hidden+"." {
			t.Fatalf("String = %q of a token in use", got)
		}
	}
	r.Replace(tokens)
	first, last := tokens[0], tokens[len(tokens)-1]
	if n := len(r.tokens.held); n != maxReplaced || r.String(first) != first || r.String(last) != Hidden {
		t.Errorf("%d tokens are kept that nobody uses, %q and %q, want the last %d", n, r.String(first), r.String(last), maxReplaced)
	}
	(*Redactor)(nil).Replace(nil, "nobody's")
}
