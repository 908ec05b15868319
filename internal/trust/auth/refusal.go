package auth

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

// The error codes of a challenge.
//
// Spec: RFC 6750, 3.1.
const (
	CodeInvalidRequest    = "invalid_request"
	CodeInvalidToken      = "invalid_token"
	CodeInsufficientScope = "insufficient_scope"
)

// A Refusal is the response to a request that is refused.
type Refusal struct {
	Status int    // HTTP status; zero means 401
	Code   string // error code of the challenge; empty if there was no credential
	// Scopes are all scopes that the request needs.
	Scopes []string
	// Verbatim says that Challenge is the complete WWW-Authenticate header; empty means
	// none. Otherwise the header is built from the other fields.
	Verbatim  bool
	Challenge string
	// Reason is for the log. Clients do not get it, because it could help to forge a token.
	Reason string
	// Cause is what is wrong, one of a few fixed texts: the log has a line of its own for each.
	// Empty means that Code says enough.
	Cause string
}

func (e *Refusal) Error() string { return e.Reason }

// StatusCode returns the HTTP status.
func (e *Refusal) StatusCode() int { return cmp.Or(e.Status, http.StatusUnauthorized) }

// A BusyError says that a credential can't be verified because too many others are being
// verified. The same request may be accepted later.
type BusyError struct {
	Limit string // the name of the limit, for metrics
	Most  int
}

func (e *BusyError) Error() string { return fmt.Sprintf("%d %s, the limit", e.Most, e.Limit) }

// Header returns the WWW-Authenticate header for a request to e; empty for none.
//
// Spec: RFC 6750, 3; RFC 9728, 5.1.
func (e *Refusal) Header(at *Endpoint) string {
	if e.Verbatim {
		return e.Challenge
	}
	return Challenge(e.Code, at, e.Scopes)
}

// Challenge returns a WWW-Authenticate header with the scheme Bearer. at may be nil.
func Challenge(code string, at *Endpoint, scopes []string) string {
	var params []string
	add := func(name, value string) {
		if value != "" {
			params = append(params, name+`="`+value+`"`)
		}
	}
	add("error", code)
	add("scope", strings.Join(scopes, " "))
	if at != nil {
		add("resource_metadata", at.MetadataURL)
	}
	return strings.TrimSuffix("Bearer "+strings.Join(params, ", "), " ")
}

// missing refuses a request without a credential.
func missing(scopes []string) *Refusal {
	return &Refusal{Scopes: scopes, Reason: "no credential"}
}

// malformed refuses a request with a credential in a form that the protocol does not allow.
func malformed(reason string) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Code: CodeInvalidRequest, Reason: reason, Cause: reason}
}

// invalid refuses a credential. The cause is the format alone.
func invalid(scopes []string, format string, args ...any) *Refusal {
	return &Refusal{Code: CodeInvalidToken, Scopes: scopes, Reason: fmt.Sprintf(format, args...), Cause: format}
}
