package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A definition is what makes a server the one that it is to other replicas. Secrets are no part
// of it, nor what may be replaced while the server is served: replicas that had that replaced,
// and those that were started anew, must agree. So must those of another version: members are
// never renamed, and those that are added are left out while they are zero.
type definition struct {
	URL       string    `json:",omitempty"`
	Transport Transport `json:",omitzero"`
	Command   []string  `json:",omitempty"`
	Dir       string    `json:",omitempty"`
	Env       []string  `json:",omitempty"` // names
	Header    []string  `json:",omitempty"` // names
	As        []string  `json:",omitempty"` // at the server

	Era          Era          `json:",omitzero"`
	Isolation    Isolation    `json:",omitzero"`
	ClientInfo   bool         `json:",omitzero"`
	Experimental bool         `json:",omitzero"`
	Hidden       []string     `json:",omitempty"`
	Roots        []string     `json:",omitempty"`
	Subresources Subresources `json:",omitzero"`
	Synthesize   synthesized  `json:",omitzero"`
}

// synthesized is a Synthesize.
type synthesized struct {
	Tools     time.Duration `json:",omitzero"`
	Prompts   time.Duration `json:",omitzero"`
	Resources time.Duration `json:",omitzero"`
	Updates   time.Duration `json:",omitzero"`
}

// digest returns a digest of what defines a server.
func (s serverBuild) digest() string {
	set := &s.set
	era := Era("")
	if set.KnownEra() != spec.Unknown || set.ByClient() {
		era = Era(set.Era)
	}
	text, err := json.Marshal(definition{
		URL: bareURL(s.URL), Transport: s.Transport,
		Command: bareCommand(s.Command), Dir: s.Dir,
		Env: slices.Sorted(maps.Keys(s.Env)), Header: slices.Sorted(maps.Keys(namesOf(s.Header))), As: s.UpstreamAuth.as(),
		Era: era, Isolation: cmp.Or(Isolation(set.Isolation), IsolatePrincipal), ClientInfo: set.ForwardsClientInfo(), Experimental: set.Experimental,
		Hidden: set.Hidden(), Roots: set.Roots, Subresources: cmp.Or(Subresources(set.Subresources), SubresourcesParent), Synthesize: synthesized(set.Synthesize),
	})
	if err != nil {
		return "" // it has nothing that is no JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// bareURL returns a URL without what may be a credential: user information, and the values of
// the query.
func bareURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return ""
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return redact.Looks(bare.String()) + "?" + strings.Join(slices.Sorted(maps.Keys(u.Query())), "&")
}

// bareCommand returns a command without arguments that look like credentials, or follow the name
// of one.
func bareCommand(command []string) (bare []string) {
	named := false
	for _, arg := range command {
		if named {
			arg = redact.Hidden
		}
		bare = append(bare, redact.Looks(arg))
		named = strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && redact.Looks(arg+"=x") != arg+"=x"
	}
	return bare
}

// as says as whom requests are sent to a server.
func (a *UpstreamAuth) as() []string {
	switch {
	case a == nil:
		return nil
	case a.ClientCredentials != nil:
		return a.ClientCredentials.as("client")
	case a.TokenExchange != nil:
		return a.TokenExchange.as("exchange")
	case a.perPrincipal():
		return append([]string{"logins", a.Login.Issuer, a.Login.ClientID}, a.Login.Scopes...)
	case a.Login != nil:
		return append([]string{"login", a.Login.Principal, a.Login.Issuer, a.Login.ClientID}, a.Login.Scopes...)
	case a.Passthrough:
		return []string{"caller"}
	}
	return []string{"token"}
}

func (c *IssuerClient) as(how string) []string {
	out := append([]string{how, c.Issuer, c.ClientID, c.Resource, c.Audience}, c.Scopes...)
	if c.IDJAG != nil {
		out = append(out, "id-jag", c.IDJAG.Issuer, c.IDJAG.ClientID)
	}
	return out
}
