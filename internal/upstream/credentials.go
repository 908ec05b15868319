package upstream

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Credentials have the Authorization header of each request to a server. They are safe for
// concurrent use.
//
// Spec: 2026-07-28, basic/authorization, Access Token Usage.
type Credentials interface {
	// Authorization returns the header's value for a request. Empty means no header. The
	// error is a [*CredentialError], or why ctx ended.
	Authorization(ctx context.Context, b Behalf) (string, error)
	// Renew returns another value after the server has refused a request, or an error as
	// Authorization does. If it returns neither, the server's response stands.
	Renew(ctx context.Context, r CredentialRefusal) (string, error)
}

// A Behalf is on whose behalf a request is sent. It is zero for what the gateway asks for
// itself.
type Behalf struct {
	Principal mcp.Principal
	Identity  *mcp.Identity // with which the client's request came; nil outside of one
}

// A CredentialRefusal is a server's 401 or 403.
type CredentialRefusal struct {
	Behalf  Behalf
	Value   string // of Authorization, that was sent
	Status  int
	Header  http.Header // of the response
	Attempt int         // of the request: 1 for the first
}

// A CredentialError says that there is no credential for a server, or none that it
// accepts.
type CredentialError struct {
	Err  error  // why; it follows the server's name
	Step string // what to do about it
	// Caller says that it is about one caller: the server may serve others.
	Caller bool
	// Refusal is what the caller is told instead, where the credential is its own.
	Refusal *mcp.Refusal
}

func (e *CredentialError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *CredentialError) Unwrap() error { return e.Err }

// CallerCredentials are Credentials that send what they get from callers.
type CallerCredentials interface {
	Credentials
	// Saw notes that a request to the server came with a credential. It may be nil.
	Saw(id *mcp.Identity)
}

// aboutCaller reports whether a server has refused what one caller may do: it is there.
func aboutCaller(err error) bool {
	var credential *CredentialError
	return errors.As(err, &credential) && credential.Caller
}

// BehalfOf returns on whose behalf a client's request is sent, or one of the gateway's own
// with the client's profile.
func BehalfOf(req *mcp.Request) Behalf {
	if req.Principal == "" {
		return Behalf{Principal: req.Profile.Principal}
	}
	return Behalf{Principal: req.Principal, Identity: req.Identity}
}

// maxAttempts bounds how often a request is sent with ever new credentials: the first may
// have expired, the second lack a scope.
//
// Spec: 2026-07-28, basic/authorization, Step-Up Authorization Flow.
const maxAttempts = 3

// authorized sends the request with credentials, again where the server refuses these and
// there are others. The server has not looked at a request that it refuses so.
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
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, &Failure{Cause: err, Fate: Refused}
}

// behalf returns on whose behalf the request is.
func (x *exchange) behalf() Behalf {
	if c := x.reply.call; c != nil && c.Behalf != (Behalf{}) {
		return c.Behalf
	}
	return x.reply.h.behalf
}

// with returns another exchange, with a value of Authorization. Header and body are its
// own: the header of x is shared, and the body of an attempt that was refused may still be
// on its way.
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
// gateway's own credentials. dial returns the HTTP status with which it was refused.
func (o *Options) Authorized(ctx context.Context, dial func(http.Header) (status int, err error)) error {
	if o.Credentials == nil {
		_, err := dial(o.Headers)
		return err
	}
	value, err := o.Credentials.Authorization(ctx, Behalf{})
	for attempt := 1; err == nil; attempt++ {
		header := o.Headers.Clone()
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
