package server

import (
	"net/url"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// An UpstreamAuth says with which credentials requests are sent to a server. One field is set.
type UpstreamAuth struct {
	Static            *StaticCredential `koanf:"static" doc:"a token from the configuration"`
	ClientCredentials *ClientGrant      `koanf:"client_credentials" doc:"a token of mcpbridge itself from an authorization server"`
	TokenExchange     *ExchangeGrant    `koanf:"token_exchange" doc:"a token for the server in exchange for that of the caller (RFC 8693)"`
	OAuth             *StoredLogin      `koanf:"oauth" doc:"the login that mcpbridge login stored"`
	Passthrough       *Passthrough      `koanf:"passthrough" doc:"the caller's own token, if the server and mcpbridge are the same resource"`
}

// StaticCredential is a token.
type StaticCredential struct {
	Token string `koanf:"token" doc:"the Bearer token"`
}

// An AssertedClient is a client that mcpbridge is at an authorization server. It authenticates by
// ClientSecret or PrivateKey.
type AssertedClient struct {
	Issuer       string `koanf:"issuer" secret:"no" doc:"issuer URL of the authorization server, exactly as in its metadata"`
	ClientID     string `koanf:"client_id" secret:"no" doc:"client ID of mcpbridge at the issuer"`
	ClientSecret string `koanf:"client_secret" doc:"client secret"`
	PrivateKey   string `koanf:"private_key" secret:"no" doc:"PEM file of the client's private key, instead of a secret (private_key_jwt), relative to the configuration"`
	KeyID        string `koanf:"key_id" secret:"no" doc:"kid header of assertions; none by default"`

	// Key is the text of PrivateKey.
	Key string `koanf:"-"`
}

// An IssuerClient is one that asks for tokens.
type IssuerClient struct {
	AssertedClient `koanf:",squash"`
	Scopes         []string `koanf:"scopes" doc:"scopes to request"`
	Resource       string   `koanf:"resource" secret:"no" doc:"resource to request a token for; the server's URL by default"`
}

// A ClientGrant asks for tokens for mcpbridge itself.
type ClientGrant struct {
	IssuerClient `koanf:",squash"`
}

// An ExchangeGrant asks for a token for each caller's.
type ExchangeGrant struct {
	IssuerClient `koanf:",squash"`
	Audience     string          `koanf:"audience" secret:"no" doc:"audience to request, in addition to resource"`
	IDJAG        *AssertedClient `koanf:"id_jag" doc:"the server's own authorization server, for which issuer is an identity provider that issues grants (ID-JAG), and the client there"`
}

// A StoredLogin is one that mcpbridge login has stored.
type StoredLogin struct {
	Principal      string   `koanf:"principal" secret:"no" doc:"the only principal that may use the login"`
	SharedIdentity bool     `koanf:"shared_identity" default:"false" doc:"whether all clients use the login, instead of one principal"`
	Per            string   `koanf:"per" enum:"principal" doc:"principal: each has a login of its own, which it makes in a browser, on a page below public_url"`
	Issuer         string   `koanf:"issuer" secret:"no" doc:"authorization server to use, if the server names several; the first by default"`
	ClientID       string   `koanf:"client_id" secret:"no" doc:"client ID of a client that was registered manually"`
	ClientSecret   string   `koanf:"client_secret" doc:"its client secret, if it has one"`
	Scopes         []string `koanf:"scopes" doc:"scopes to request in addition to those that the server names"`
	PKCE           string   `koanf:"pkce" default:"required" enum:"required assume" doc:"assume logs in at an issuer that does not say that it supports PKCE; the specification forbids it"`
	CallbackPort   int64    `koanf:"callback_port" default:"0" max:"65535" doc:"loopback port of the redirect URI; 0 is one of three that belong to the server"`
}

// LoginStoredBy returns what the login of mcpbridge login to a server is stored by; empty if there is
// none. Tokens are stored by what they are for, which the server says: mostly its URL without the
// query, and it may have a slash at its end or not.
func (s *Options) LoginStoredBy() string {
	u, err := url.Parse(s.URL)
	if s.UpstreamAuth == nil || s.UpstreamAuth.OAuth == nil || s.UpstreamAuth.OAuth.Per != "" || err != nil || u.Host == "" {
		return ""
	}
	port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), port) + strings.TrimRight(u.EscapedPath(), "/")
}

// Passthrough sends the caller's own token.
type Passthrough struct {
	SameResource bool `koanf:"same_resource" doc:"must be true: the server and mcpbridge are the same resource"`
}

// Secrets returns the secrets of a server's credentials.
func (a *UpstreamAuth) Secrets() []string {
	if a == nil {
		return nil
	}
	var out []string
	if a.Static != nil {
		out = append(out, a.Static.Token)
	}
	if a.ClientCredentials != nil {
		out = append(out, a.ClientCredentials.ClientSecret, a.ClientCredentials.Key)
	}
	if a.TokenExchange != nil {
		out = append(out, a.TokenExchange.ClientSecret, a.TokenExchange.Key)
		if g := a.TokenExchange.IDJAG; g != nil {
			out = append(out, g.ClientSecret, g.Key)
		}
	}
	if a.OAuth != nil {
		out = append(out, a.OAuth.ClientSecret)
	}
	return out
}

// Clients returns the clients that may have a private key, by their keys.
func (a *UpstreamAuth) Clients() map[string]*AssertedClient {
	out := make(map[string]*AssertedClient)
	if a != nil && a.ClientCredentials != nil {
		out["client_credentials"] = &a.ClientCredentials.AssertedClient
	}
	if a != nil && a.TokenExchange != nil {
		out["token_exchange"] = &a.TokenExchange.AssertedClient
		if a.TokenExchange.IDJAG != nil {
			out[key.Join("token_exchange", "id_jag")] = a.TokenExchange.IDJAG
		}
	}
	return out
}

// maxKeyFile bounds a file with a private key, in bytes.
const maxKeyFile = 64 << 10

// Resolve reads the files with private keys that are named below path, and checks that they can
// sign.
func (a *UpstreamAuth) Resolve(sc *value.Scope, rep *key.Report, path string) {
	for way, client := range a.Clients() {
		if client.PrivateKey == "" {
			continue
		}
		here := key.Join(path, way, "private_key")
		client.PrivateKey = sc.PathOf(rep, here, client.PrivateKey)
		text, err := sc.Read(client.PrivateKey, maxKeyFile)
		if err != nil {
			rep.Fail(here, "%v", err)
			continue
		}
		client.Key = string(text)
		if _, _, err := certs.SigningKey(client.Key); err != nil {
			rep.Fail(here, "%s: %v", client.PrivateKey, err)
		}
	}
}
