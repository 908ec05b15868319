package options

import (
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// authentication returns the options of who clients are; nil for nil.
func authentication(a *config.Auth) *gateway.Auth {
	if a == nil {
		return nil
	}
	o := &gateway.Auth{}
	for _, t := range a.Tokens {
		o.Tokens = append(o.Tokens, gateway.StaticToken(t))
	}
	for i, j := range a.JWT {
		issuer := gateway.JWT{
			Issuer: j.Issuer, Audience: j.Audience, Algorithms: j.Algorithms, Types: j.Types, Scopes: j.Scopes, PrincipalClaims: j.PrincipalClaims,
			LoginClient: (*gateway.LoginClient)(j.LoginClient), Introspection: (*gateway.Introspection)(j.Introspection),
		}
		if i == 0 {
			o.JWT = &issuer
		} else {
			o.OtherIssuers = append(o.OtherIssuers, issuer)
		}
	}
	if a.MTLS != nil {
		o.MTLS = &gateway.MTLS{SPIFFE: a.MTLS.Principal == "spiffe"}
	}
	return o
}

// UpstreamAuth says with which credentials requests are sent to a server; nil for those of
// its headers.
func UpstreamAuth(a *config.UpstreamAuth) *gateway.UpstreamAuth {
	switch {
	case a == nil:
		return nil
	case a.Static != nil:
		return &gateway.UpstreamAuth{Token: a.Static.Token}
	case a.ClientCredentials != nil:
		return &gateway.UpstreamAuth{ClientCredentials: issuerClient(&a.ClientCredentials.IssuerClient, "")}
	case a.TokenExchange != nil:
		exchange := issuerClient(&a.TokenExchange.IssuerClient, a.TokenExchange.Audience)
		if a.TokenExchange.IDJAG != nil {
			exchange.IDJAG = issuerClient(&config.IssuerClient{AssertedClient: *a.TokenExchange.IDJAG}, "")
		}
		return &gateway.UpstreamAuth{TokenExchange: exchange}
	case a.OAuth != nil:
		o := a.OAuth
		return &gateway.UpstreamAuth{Login: &gateway.StoredLogin{Principal: o.Principal, SharedIdentity: o.SharedIdentity, PerPrincipal: o.Per != "", Issuer: o.Issuer,
			ClientID: o.ClientID, ClientSecret: o.ClientSecret, Scopes: o.Scopes, CallbackPort: int(o.CallbackPort), AssumePKCE: o.PKCE == "assume"}}
	}
	return &gateway.UpstreamAuth{Passthrough: a.Passthrough != nil}
}

func issuerClient(c *config.IssuerClient, audience string) *gateway.IssuerClient {
	return &gateway.IssuerClient{Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret, PrivateKey: c.Key, KeyID: c.KeyID,
		Scopes: c.Scopes, Resource: c.Resource, Audience: audience}
}
