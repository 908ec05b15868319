package router

import (
	"net/http"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/issuertest"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// guardedRig is a gateway with one server, whose clients send the tokens of an issuer.
type guardedRig struct {
	*rig
	issuer *issuertest.Issuer
	jwt    *auth.JWT
}

// resource is the public URL of the server.
const resource = "https://mcp.example.com/mcp/peer"

func newGuardedRig(t *testing.T, change func(*auth.JWTOptions), further ...func(*Options)) *guardedRig {
	g := &guardedRig{issuer: issuertest.New(t)}
	o := auth.JWTOptions{Issuer: g.issuer.URL, Client: fetch.New(fetch.Options{Near: []string{g.issuer.URL}}), Scopes: []string{"mcp:use"}}
	if change != nil {
		change(&o)
	}
	var err error
	if g.jwt, err = auth.NewJWT(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.jwt.Close)
	g.rig = newRig(t, func(o *Options) {
		o.Auth = g.jwt
		o.Servers[0].PublicURL = resource
		for _, f := range further {
			f(o)
		}
	})
	g.peer.answer("tools/call", say("done"))
	return g
}

// call calls a tool with headers of Authorization, and returns the answer.
func (g *guardedRig) call(t *testing.T, authorization ...string) answer {
	t.Helper()
	h := modernHeaders("tools/call", "a")
	for _, value := range authorization {
		h.Add("Authorization", value)
	}
	return g.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"a"`), h)
}
