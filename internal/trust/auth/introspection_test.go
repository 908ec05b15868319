package auth

import (
	"errors"
	"maps"
	"net/http"
	"testing"
	"time"
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
		i.SetOpaque("bad", claims)
		var r *Refusal
		if _, err := j.Authenticate(sending("bad"), endpoint(t, resource)); !errors.As(err, &r) || r.Code != CodeInvalidToken {
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
	if got := j.verified.find("t", resource, time.Now().Add(maxInspected+time.Second)); got != nil {
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

// A flood of unknown tokens has the issuer asked about few at a time.
func TestFloodOfOpaqueTokens(t *testing.T) {
	i, j := newJWT(t, func(o *JWTOptions) { o.Introspection = &Introspection{"gateway", "secret"} })
	_ = i
	for range maxInspections {
		j.inspector.places <- struct{}{}
	}
	_, err := j.Authenticate(sending("t"), endpoint(t, resource))
	var busy *BusyError
	if !errors.As(err, &busy) || busy.Limit != "introspections" {
		t.Errorf("one more = %v, want it refused for the limit", err)
	}
}
