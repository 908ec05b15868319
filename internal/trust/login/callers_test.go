package login

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// issued returns a token of ada's issuer that expires after a time.
func issued(token string, left time.Duration) *mcp.Identity {
	id := identity("ada", token)
	id.Issuer, id.Expires = "https://id.example.com", time.Now().Add(left)
	return id
}

// of returns on whose behalf a request with a token is sent.
func of(id *mcp.Identity) upstream.Behalf {
	return upstream.Behalf{Principal: id.Principal, Identity: id}
}

// options are those of a client at the authorization server of an outage, which is found.
func (o *outage) options() IssuerOptions {
	client := fetch.New(fetch.Options{})
	client.HTTP().Transport = o
	return IssuerOptions{HTTP: client, Resource: "http://127.0.0.1/mcp", ClientID: "service"}
}

// find has a client know the authorization server.
func (o *outage) find(i *issuerClient) {
	i.found.Store(&authServer{Issuer: "http://127.0.0.1", TokenEndpoint: "http://127.0.0.1/token"})
}

// wantRefusal fails the test unless the caller is told to get another token.
func wantRefusal(t *testing.T, what string, err error) {
	t.Helper()
	var c *upstream.CredentialError
	if !errors.As(err, &c) || !c.Caller || c.Refusal == nil || c.Refusal.Status != http.StatusUnauthorized {
		t.Errorf("%s: %v, want an error that is the caller's 401", what, err)
	}
}

// A token that has expired is passed on as long as requests with it are accepted: its server
// refuses it, or does not. Then it is not, and nothing is sent as nobody's.
func TestExpiredTokenIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, late := Passthrough(), of(issued("late", -5*time.Second))
		value, err := p.Authorization(t.Context(), late)
		if value != "Bearer late" || err != nil {
			t.Errorf("Authorization = %q, %v, want the token", value, err)
		}
		refused := upstream.CredentialRefusal{Behalf: late, Value: value, Status: http.StatusUnauthorized, Attempt: 1}
		_, err = p.Renew(t.Context(), refused)
		wantRefusal(t, "refused by the server", err)
		time.Sleep(mcp.ClockSkew)
		value, err = p.Authorization(t.Context(), late)
		if wantRefusal(t, "accepted no more", err); value != "" {
			t.Errorf("Authorization = %q of a token that has ended", value)
		}
	})
}

// A token in exchange for one that has expired is asked for once, and is good as long as that is
// accepted. If the authorization server refuses it, the caller is told to get another.
func TestExpiredTokenIsExchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, time.Hour)
		e, err := TokenExchange(o.options())
		if err != nil {
			t.Fatal(err)
		}
		o.find(e.issuer)
		late := of(issued("late", -5*time.Second))
		for range 2 {
			if value, err := e.Authorization(t.Context(), late); value != "Bearer access-1" || err != nil {
				t.Errorf("Authorization = %q, %v, want the exchanged token", value, err)
			}
		}
		o.asked(1)
		o.status.Store(http.StatusBadRequest)
		o.code = `{"error":"invalid_request"}`
		_, err = e.Authorization(t.Context(), of(issued("later", -5*time.Second)))
		wantRefusal(t, "refused by the authorization server", err)
		o.find(e.issuer)
		_, err = e.Authorization(t.Context(), of(issued("young", time.Hour)))
		var c *upstream.CredentialError
		if !errors.As(err, &c) || c.Refusal != nil {
			t.Errorf("a token that has not expired: %v, want an error that says what to do", err)
		}
		time.Sleep(mcp.ClockSkew)
		_, err = e.Authorization(t.Context(), late)
		wantRefusal(t, "accepted no more", err)
	})
}

// What is left of a request when its token has ended is sent with a later token of its principal,
// as its client would send it. It gets no further rights by that, but for reading an answer.
func TestBegunRequestOutlivesItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Passthrough()
		wants := func(what string, b upstream.Behalf, want string) {
			t.Helper()
			if value, err := p.Authorization(t.Context(), b); value != want || (err == nil) != (want != "") {
				t.Errorf("%s: Authorization = %q, %v, want %q", what, value, err, want)
			}
		}
		first := of(issued("first", time.Minute))
		p.Saw(first.Identity)
		p.Saw(issued("second", time.Hour))
		wants("a token that is good", first, "Bearer first")
		time.Sleep(time.Minute + mcp.ClockSkew)
		wants("one that has ended", first, "Bearer second")
		strong := issued("strong", time.Hour)
		strong.Scopes = []string{"write"}
		p.Saw(strong)
		wants("where only a stronger one is left", first, "")
		first.Reads = true
		wants("to read an answer", first, "Bearer strong")
		wants("another principal's", upstream.Behalf{Principal: "eve", Identity: first.Identity, Reads: true}, "")
	})
}

// Outside of requests the token counts that came last, and when that has ended the one that lasts
// longest: a client with an older token of the same principal may have been the last.
func TestOlderTokenHidesNoLaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ada := Passthrough(), upstream.Behalf{Principal: "ada"}
		p.Saw(issued("later", time.Hour))
		p.Saw(issued("older", time.Minute))
		for _, want := range []string{"Bearer older", "Bearer later", ""} {
			if value, err := p.Authorization(t.Context(), ada); value != want || err != nil {
				t.Errorf("Authorization = %q, %v, want %q", value, err, want)
			}
			time.Sleep(31 * time.Minute)
		}
	})
}

// Who has no principal gets nobody's token, another's without one neither.
func TestNobodyHasNobodysToken(t *testing.T) {
	c := newCallers()
	id := issued("somebody's", time.Hour)
	id.Principal = ""
	c.Saw(id)
	if got := c.token(upstream.Behalf{}); got != "" {
		t.Errorf("the token is %q, want none", got)
	}
	old := issued("own", -2*mcp.ClockSkew)
	old.Principal = ""
	if got := c.token(of(old)); got != "" {
		t.Errorf("after the end of its own, the token is %q, want none", got)
	}
}
