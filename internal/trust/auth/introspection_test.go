package auth

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func inspected(change map[string]any) map[string]any {
	claims := map[string]any{"sub": "ada", "aud": resource, "exp": time.Now().Add(time.Hour).Unix(), "scope": "mcp:use", "token_type": "bearer"}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// What is not a JWT is what its issuer says, and has to be for this endpoint all the same.
func TestIntrospection(t *testing.T) {
	i, j := newJWT(t, func(o *JWTOptions) {
		o.Introspection = &Introspection{"gateway", "secret"}
		o.Scopes = []string{"mcp:use"}
	})
	i.SetOpaque("good", inspected(map[string]any{"iss": i.URL}))
	i.SetOpaque("unnamed", inspected(nil))
	id := mustAccept(t, j, "good")
	if id.Subject != "ada" || id.Issuer != i.URL || id.Expires.Before(time.Now()) || id.Principal != mustAccept(t, j, "unnamed").Principal {
		t.Errorf("identity = %+v, want ada's", id)
	}
	for name, claims := range map[string]map[string]any{
		"for another endpoint":  inspected(map[string]any{"aud": "https://mcp.example.com/mcp/other"}),
		"for no endpoint":       inspected(map[string]any{"aud": nil}),
		"of another issuer":     inspected(map[string]any{"iss": "https://id.example.com"}),
		"expired":               inspected(map[string]any{"exp": time.Now().Add(-2 * time.Minute).Unix()}),
		"that never expires":    inspected(map[string]any{"exp": nil}),
		"of nobody":             inspected(map[string]any{"sub": nil}),
		"of another type":       inspected(map[string]any{"token_type": "DPoP"}),
		"bound to a key":        inspected(map[string]any{"cnf": map[string]any{"jkt": "x"}}),
		"inactive":              nil,
		"inactive, with claims": inspected(map[string]any{"active": false}),
	} {
		bad := "bad-" + strings.NewReplacer(" ", "-", ",", "").Replace(name) // a refused one is remembered
		i.SetOpaque(bad, claims)
		var r *Refusal
		if _, err := j.Authenticate(sending(bad), endpoint(t, resource)); !errors.As(err, &r) || r.Code != CodeInvalidToken {
			t.Errorf("%s = %v, want it refused", name, err)
		}
	}
	i.SetOpaque("narrow", inspected(map[string]any{"scope": "other"}))
	var r *Refusal
	if _, err := j.Authenticate(sending("narrow"), endpoint(t, resource)); !errors.As(err, &r) || r.Code != CodeInsufficientScope || r.Status != http.StatusForbidden {
		t.Errorf("without the scope = %v, want 403", err)
	}
}

// The issuer is asked once in a while, so that a token that was revoked is of no use soon.
func TestRevokedToken(t *testing.T) {
	i, j := newJWT(t, func(o *JWTOptions) { o.Introspection = &Introspection{"gateway", "secret"} })
	i.SetOpaque("t", inspected(nil))
	id := mustAccept(t, j, "t")
	mustAccept(t, j, "t")
	if n := i.Fetched("/introspect"); n != 1 {
		t.Errorf("the issuer was asked %d times, want once", n)
	}
	i.SetOpaque("t", nil)
	if _, ok := j.verified.find("t", resource, time.Now().Add(maxInspected+time.Second)); ok {
		t.Errorf("what the issuer said is kept beyond %v", maxInspected)
	}
	mustRefuse(t, j, "t", "not any more")
	if err := id.Verify(t.Context()); err == nil {
		t.Error("Verify() = nil, want the credential of an open stream refused")
	}
}

// Without introspection what is not a JWT is refused, and with a wrong client nobody is.
func TestIntrospectionMissing(t *testing.T) {
	i, j := newJWT(t, nil)
	i.SetOpaque("t", inspected(nil))
	mustRefuse(t, j, "t", "no introspection")
	i, j = newJWT(t, func(o *JWTOptions) { o.Introspection = &Introspection{"gateway", "wrong"} })
	i.SetOpaque("t", inspected(nil))
	var r *Refusal
	if _, err := j.Authenticate(sending("t"), endpoint(t, resource)); err == nil || errors.As(err, &r) {
		t.Errorf("asked by a wrong client = %v, want what is no refusal", err)
	}
}

// from returns a request of an address with a token.
func from(addr, token string) *http.Request {
	r := sending(token)
	r.RemoteAddr = addr + ":1"
	return r
}

// busyFor reports whether err is about a limit.
func busyFor(err error, limit string) bool {
	var busy *BusyError
	return errors.As(err, &busy) && busy.Limit == limit
}

// The issuer is asked about few tokens at a time, and one address has half of that.
func TestFloodOfOpaqueTokens(t *testing.T) {
	turns, err := newTurns()
	if err != nil {
		t.Fatal(err)
	}
	one, other, third := share("192.0.2.1"), share("192.0.2.2"), share("192.0.2.3")
	var ends []func(error)
	for _, who := range []*mcp.Share{one, other} {
		for range maxInspectionsEach {
			end, err := turns.take(who)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		if _, err := turns.take(who); !busyFor(err, "introspections_each") && !busyFor(err, "introspections") {
			t.Errorf("one more of %v = %v, want it refused for the limit", who, err)
		}
	}
	for _, who := range []*mcp.Share{third, nil} {
		if _, err := turns.take(who); !busyFor(err, "introspections") {
			t.Errorf("one more of %v = %v, want it refused for the limit", who, err)
		}
	}
	for _, end := range ends {
		end(nil)
	}
	if turns.all != 0 || len(turns.each) != 0 {
		t.Errorf("after their ends there are %d, %v", turns.all, turns.each)
	}
	if end, err := turns.take(one); err != nil {
		t.Errorf("after their ends one more = %v", err)
	} else {
		end(nil)
	}
}

func share(addr string) *mcp.Share { return (&Endpoint{}).shareOf(from(addr, "t")) }

// 10,000 invented tokens of one address in ten seconds have the issuer asked 100 times at
// most, and a good token of another address is accepted all the while. What one address may
// have refused comes back.
func TestFloodOfInventedTokens(t *testing.T) {
	i, j := newJWT(t, func(o *JWTOptions) { o.Introspection = &Introspection{"gateway", "secret"} })
	i.SetOpaque("warm", inspected(nil))
	mustAccept(t, j, "warm") // the metadata, which takes real time
	e := endpoint(t, resource)
	asked := i.Fetched("/introspect")
	var refused, busy int
	var honest int
	begun := time.Now()
	for n := range 10_000 {
		_, err := j.Authenticate(from("192.0.2.66", fmt.Sprint("invented-", n)), e)
		switch {
		case errors.As(err, new(*Refusal)):
			refused++
		case busyFor(err, "refused_tokens_each"):
			busy++
		default:
			t.Fatalf("an invented token = %v", err)
		}
		if n%100 == 0 {
			good := fmt.Sprint("honest-", n)
			i.SetOpaque(good, inspected(nil))
			if _, err := j.Authenticate(from("192.0.2.7", good), e); err != nil {
				t.Fatalf("an honest token of another address = %v", err)
			}
			honest++
		}
	}
	took := time.Since(begun)
	n, most := i.Fetched("/introspect")-asked-honest, refusedBurst+1+int(took.Seconds()*maxRefusedEach)
	if n > most || n != refused || refused+busy != 10_000 {
		t.Errorf("the issuer was asked %d times in %v, want %d at most; %d were refused, %d had to wait", n, took, most, refused, busy)
	}
	t.Logf("10,000 invented tokens of one address in %v: the issuer was asked %d times, %d were refused, %d had to wait; %d of %d honest tokens of another address were accepted", took, n, refused, busy, honest, 10_000/100)
	if in10s := refusedBurst + maxInspectionsEach + 10*maxRefusedEach; in10s > 100 {
		t.Errorf("the issuer may be asked %d times in 10 s, want 100 at most", in10s)
	}
}

// What an address may have refused comes back with time; what is accepted takes none of it.
func TestRefusedTokensOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, _ := newTurns()
		turn := func(err error) error {
			end, busy := turns.take(share("192.0.2.1"))
			if busy == nil {
				end(err)
			}
			return busy
		}
		for range 10 * refusedBurst {
			if err := turn(nil); err != nil {
				t.Fatalf("an accepted token = %v", err)
			}
		}
		for range refusedBurst {
			if err := turn(&Refusal{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := turn(nil); !busyFor(err, "refused_tokens_each") {
			t.Errorf("after %d refused ones = %v, want it refused for the limit", refusedBurst, err)
		}
		if _, err := turns.take(nil); err != nil {
			t.Errorf("a token that is verified anew = %v", err)
		}
		time.Sleep(time.Second)
		if err := turn(nil); err != nil {
			t.Errorf("a second later = %v", err)
		}
	})
}

// The issuer is not asked again about a token that it has refused just now, and is after a
// while.
func TestRefusedTokenIsRemembered(t *testing.T) {
	i, j := newJWT(t, func(o *JWTOptions) { o.Introspection = &Introspection{"gateway", "secret"} })
	i.SetOpaque("elsewhere", inspected(map[string]any{"aud": "https://mcp.example.com/mcp/other"}))
	for _, token := range []string{"invented", "elsewhere"} {
		asked := i.Fetched("/introspect")
		for range 3 {
			var r *Refusal
			if _, err := j.Authenticate(sending(token), endpoint(t, resource)); !errors.As(err, &r) || r.Code != CodeInvalidToken {
				t.Errorf("%s = %v, want it refused", token, err)
			}
		}
		if n := i.Fetched("/introspect") - asked; n != 1 {
			t.Errorf("the issuer was asked %d times about a token that is %s, want once", n, token)
		}
	}
	if _, err := j.Authenticate(sending("elsewhere"), endpoint(t, "https://mcp.example.com/mcp/other")); err != nil {
		t.Errorf("the token at its own endpoint = %v", err)
	}
}

func TestRefusedTokensEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, _ := newRefusedTokens()
		at := known.of("t", resource)
		known.keep(at, errors.New("the issuer is down"))
		if err := known.find(at); err != nil {
			t.Errorf("what is no refusal was kept: %v", err)
		}
		known.keep(at, &Refusal{Reason: "no"})
		time.Sleep(refusedLife - time.Millisecond)
		if err := known.find(at); err == nil {
			t.Errorf("it is forgotten before %v", refusedLife)
		}
		time.Sleep(time.Millisecond)
		if err := known.find(at); err != nil {
			t.Errorf("it is kept beyond %v", refusedLife)
		}
		for n := range 2 * maxRefused {
			known.keep(known.of(fmt.Sprint(n), resource), &Refusal{})
		}
		if n := known.known.Len(); n != maxRefused {
			t.Errorf("%d are kept, want %d", n, maxRefused)
		}
	})
}
