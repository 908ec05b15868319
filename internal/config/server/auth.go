package server

// An Auth says how clients prove who they are: in each of the ways that are set.
type Auth struct {
	// Word is none where all clients are anonymous, and empty otherwise.
	Word   string  `koanf:"word"`
	Tokens []Token `koanf:"tokens" doc:"tokens that clients send; a name may have several, to exchange them one after another"`
	JWT    []JWT   `koanf:"jwt" single:"yes" doc:"access tokens of an OAuth issuer, or of several"`
	MTLS   *MTLS   `koanf:"mtls" doc:"client certificates, which tls.client_ca verifies"`
}

// A Token is one that a client sends. Either Token or SHA256 is set.
type Token struct {
	Name   string   `koanf:"name" secret:"no" doc:"the principal: whom the token stands for"`
	Token  string   `koanf:"token" doc:"the token, of 16 characters at least; mcpbridge token makes one"`
	SHA256 string   `koanf:"sha256" doc:"the SHA-256 of the token instead, in hexadecimal"`
	Scopes []string `koanf:"scopes" doc:"what a policy may ask for"`
}

// JWT says whose access tokens are accepted, and which.
type JWT struct {
	Issuer          string         `koanf:"issuer" secret:"no" doc:"the issuer, byte for byte as its tokens have it; its keys come from its metadata"`
	Audience        []string       `koanf:"audience" secret:"no" doc:"values of aud to accept besides the public URL, each at all endpoints that have it"`
	Algorithms      []string       `koanf:"algorithms" doc:"signatures to accept; all asymmetric ones by default"`
	Types           []string       `koanf:"types" doc:"the typ of access tokens; at+jwt by default, JWT and missing for issuers that write no other, or none"`
	Scopes          []string       `koanf:"scopes" doc:"scopes that every request needs, as clients ask the issuer for them"`
	PrincipalClaims []string       `koanf:"principal_claims" doc:"claims that are part of the principal beside issuer and subject, as client_id"`
	LoginClient     *LoginClient   `koanf:"login_client" doc:"the gateway's client with which users prove in a browser who they are (upstream_auth.oauth.per); by default one that registers itself"`
	Introspection   *Introspection `koanf:"introspection" doc:"asks the issuer about tokens that are not JWTs"`
}

// A LoginClient is a client with the redirect URI /login/return below the public URL.
type LoginClient struct {
	ClientID     string `koanf:"client_id" secret:"no" doc:"its id at the issuer"`
	ClientSecret string `koanf:"client_secret" doc:"its secret, if it has one"`
}

// Introspection is how the gateway asks the issuer about a token.
type Introspection struct {
	ClientID     string `koanf:"client_id" secret:"no" doc:"the gateway's own client at the issuer"`
	ClientSecret string `koanf:"client_secret" doc:"its secret"`
}

// MTLS says what of a certificate is the principal.
type MTLS struct {
	Principal string `koanf:"principal" default:"san" enum:"san spiffe" doc:"the first subject alternative name, or the SPIFFE ID"`
}

// Secrets returns what clients and the gateway prove themselves with.
func (a *Auth) Secrets() []string {
	if a == nil {
		return nil
	}
	var out []string
	for _, t := range a.Tokens {
		out = append(out, t.Token)
	}
	for _, j := range a.JWT {
		if j.LoginClient != nil {
			out = append(out, j.LoginClient.ClientSecret)
		}
		if j.Introspection != nil {
			out = append(out, j.Introspection.ClientSecret)
		}
	}
	return out
}
