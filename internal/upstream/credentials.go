package upstream

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Credentials provide the Authorization header of each request to a server. They are safe
// for concurrent use.
//
// Spec: 2026-07-28, basic/authorization, Access Token Usage.
type Credentials interface {
	// Authorization returns the header's value for a request. Empty means no header. The
	// error is a [*CredentialError], or the cause of ctx's end.
	Authorization(ctx context.Context, b Behalf) (string, error)
	// Renew returns a new value after the server has refused a request, or an error as
	// Authorization does. If it returns neither, the server's response goes to the client.
	Renew(ctx context.Context, r CredentialRefusal) (string, error)
}

// A Behalf is on whose behalf a request is sent. It is zero for requests of the gateway
// itself.
type Behalf struct {
	Principal mcp.Principal
	Identity  *mcp.Identity // of the client's request; nil outside of one
	Reads     bool          // it only reads on the answer to the client's request, which was sent before
}

// A CredentialRefusal is a server's 401 or 403.
type CredentialRefusal struct {
	Behalf  Behalf
	Value   string // the Authorization header that was sent
	Status  int
	Header  http.Header // the response's
	Attempt int         // the request's number: 1 for the first
}

// A CredentialError says that there is no credential for a server, or none that it accepts.
type CredentialError struct {
	Err  error  // the cause; it follows the server's name
	Step string // what to do about it
	// Caller says that the error is about one caller: the server may serve others.
	Caller bool
	// Login says that a login is in progress: the same request may be served after it.
	Login bool
	// Refusal is the response for the caller, if the credential is its own.
	Refusal *mcp.Refusal
}

func (e *CredentialError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *CredentialError) Unwrap() error { return e.Err }

// CallerCredentials are Credentials that pass callers' credentials on.
type CallerCredentials interface {
	Credentials
	// Saw records that a request to the server came with a credential. id may be nil.
	Saw(id *mcp.Identity)
}

// aboutCaller reports whether a server has refused one caller only: it can be reached.
func aboutCaller(err error) bool {
	var credential *CredentialError
	return errors.As(err, &credential) && credential.Caller
}

// BehalfOf returns on whose behalf a client's request is sent, or one of the gateway itself
// with the client's profile.
func BehalfOf(req *mcp.Request) Behalf {
	if req.Principal == "" {
		return Behalf{Principal: req.Profile.Principal}
	}
	return Behalf{Principal: req.Principal, Identity: req.Identity}
}

// maxAttempts bounds how often a request is sent with new credentials: the first may have
// expired, and the second may lack a scope.
//
// Spec: 2026-07-28, basic/authorization, Step-Up Authorization Flow.
const maxAttempts = 3

// authorized sends the request with credentials. If the server refuses them, it sends the
// request again with new ones: a server does not run a request that it refuses in this way.
func (x *exchange) authorized() (*Reply, error) {
	ctx, creds, b := x.reply.ctx, x.reply.h.opts.Credentials, x.behalf()
	value, err := creds.Authorization(ctx, b)
	for attempt := 1; err == nil; attempt++ {
		r, sent := x.with(value).roundTrip()
		if sent != nil || r.Status() != http.StatusUnauthorized && r.Status() != http.StatusForbidden {
			return r, sent
		}
		value, err = creds.Renew(ctx, CredentialRefusal{b, value, r.Status(), r.Header(), attempt})
		if err == nil && (value == "" || attempt == maxAttempts) {
			return r, nil
		}
		r.Discard()
	}
	if ctx.Err() != nil { // nothing was sent, or the server has refused it
		return nil, &Failure{Cause: context.Cause(ctx), Fate: NotSent}
	}
	return nil, &Failure{Cause: err, Fate: Refused}
}

// behalf returns on whose behalf the request is.
func (x *exchange) behalf() Behalf {
	c := x.reply.call
	if c == nil || c.Behalf == (Behalf{}) {
		return x.reply.h.behalf
	}
	b := c.Behalf
	b.Reads = x.req.Method == http.MethodGet
	return b
}

// with returns another exchange, with a value of Authorization. It has its own header and
// body: the header of x is shared, and the body of a refused attempt may still be being
// sent.
func (x *exchange) with(value string) *exchange {
	out := x.reply.h.begin(x.reply.ctx, x.reply.call, x.req.Method, x.req.Header)
	if value != "" {
		out.req.Header = maps.Clone(x.req.Header)
		out.req.Header["Authorization"] = []string{value}
	}
	if x.frame != nil {
		out.carry(x.frame)
	}
	return out
}

// Authorized dials a connection that all callers share, with the configured headers and the
// gateway's own credentials. dial returns the HTTP status of a refusal.
func (o *Options) Authorized(ctx context.Context, dial func(http.Header) (status int, err error)) error {
	if o.Credentials == nil {
		_, err := dial(o.Renewed.over(o.Headers))
		return err
	}
	value, err := o.Credentials.Authorization(ctx, Behalf{})
	for attempt := 1; err == nil; attempt++ {
		header := o.Renewed.over(o.Headers).Clone()
		if header == nil {
			header = make(http.Header)
		}
		header.Set("Authorization", value)
		status, failed := dial(header)
		if failed == nil || status != http.StatusUnauthorized && status != http.StatusForbidden || attempt == maxAttempts {
			return failed
		}
		if value, err = o.Credentials.Renew(ctx, CredentialRefusal{Value: value, Status: status, Attempt: attempt}); value == "" && err == nil {
			return failed
		}
	}
	return err
}
