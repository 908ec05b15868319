package gateway

import "net/http"

// An Authenticator says on whose behalf HTTP requests are. It is called once for each
// request, WebSocket and HTTP+SSE stream, before anything of it is read, for many of them
// at the same time.
type Authenticator interface {
	// Authenticate returns a name for the party that sent the request; requests of
	// different principals share no session, no subscription and no result unless
	// [IsolateNothing] says so. The empty name is that of anonymous clients.
	//
	// A request is refused if the error is not nil: as an [*AuthError] says, or with
	// 401. The text of an error stands in the log; clients do not see it.
	Authenticate(r *http.Request) (principal string, err error)
}

// An AuthenticatorFunc is a function that is an [Authenticator].
type AuthenticatorFunc func(*http.Request) (principal string, err error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(r *http.Request) (string, error) { return f(r) }

// An AuthError refuses a request.
type AuthError struct {
	Status    int    // of HTTP; zero means 401
	Challenge string // the WWW-Authenticate header; empty for none
	Reason    string // for the log
}

func (e *AuthError) Error() string { return e.Reason }
