package auth

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// An Authenticator verifies credentials. It is safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the identity of the sender of r, a request to e. Nil without an
	// error is an anonymous sender. It does not read the body. The error is a [*Refusal],
	// or says why the credential can't be verified at the moment.
	Authenticate(r *http.Request, e *Endpoint) (*mcp.Identity, error)
}

// A Resource is an [Authenticator] whose endpoints have metadata.
type Resource interface {
	Authenticator
	// Metadata returns the metadata document of e.
	Metadata(e *Endpoint) []byte
	// Scopes returns the scopes that every request needs.
	Scopes() []string
}

// None accepts every request, as one of an anonymous client.
var None Authenticator = none{}

type none struct{}

func (none) Authenticate(*http.Request, *Endpoint) (*mcp.Identity, error) { return nil, nil }

// Nobody refuses every request, without a hint at what exists.
var Nobody Authenticator = nobody{}

type nobody struct{}

func (nobody) Authenticate(*http.Request, *Endpoint) (*mcp.Identity, error) {
	return nil, &Refusal{Status: http.StatusNotFound, Verbatim: true, Reason: "no server's path"}
}

// A Func is a function as an [Authenticator]: it returns the name of the sender, which is
// empty for an anonymous one.
type Func func(r *http.Request) (mcp.Principal, error)

// Authenticate calls f.
func (f Func) Authenticate(r *http.Request, _ *Endpoint) (*mcp.Identity, error) {
	principal, err := f(r)
	if err != nil || principal == "" || principal == mcp.Anonymous {
		return nil, err
	}
	return &mcp.Identity{Principal: principal}, nil
}

// Caller returns an Authenticator for a gateway in the process of its only caller: each request
// counts as one that has brought the caller's token.
func Caller(token string) Authenticator {
	id := &mcp.Identity{Principal: "caller"}
	id.SetToken(token)
	return caller{id}
}

type caller struct{ id *mcp.Identity }

func (c caller) Authenticate(*http.Request, *Endpoint) (*mcp.Identity, error) { return c.id, nil }
