package upstream

import (
	"cmp"
	"fmt"
	"net/http"
)

// A StatusError is an HTTP error that answers a message without a JSON-RPC message.
type StatusError struct {
	Code int
	Note string // what the server's own error said, shortened; empty if it sent none

	Slash bool // it redirects to the same URL with a slash at its end
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("HTTP %d %s", e.Code, cmp.Or(http.StatusText(e.Code), "(unknown status)"))
	if e.Note != "" {
		text += ": " + e.Note
	}
	return text
}

// Public returns what clients are told: all of it, since the server meant it for them.
func (e *StatusError) Public() string { return e.Error() }

// AboutCredentials reports whether the status is about the gateway's own credentials, of
// which a client knows nothing.
func (e *StatusError) AboutCredentials() bool {
	return e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden
}

// Advice is what to do about a status that configuration causes, after a semicolon.
func (e *StatusError) Advice() string {
	switch {
	case e.AboutCredentials():
		return "; check the credentials in the server's headers"
	case e.Slash:
		return "; redirects are not followed: put a / at the end of its URL"
	case e.Code >= 300 && e.Code <= 399:
		return "; redirects are not followed: configure the URL it leads to"
	}
	return ""
}

// Step is what to do about a status, after a semicolon. A status for which the server
// gave no reason may come of a wrong path.
func (e *StatusError) Step() string {
	if e.Note == "" && (e.Code == http.StatusNotFound || e.Code == http.StatusMethodNotAllowed) {
		return "; check the path of its URL"
	}
	return e.Advice()
}

// Fate says what the server did with the request: a client error is a refusal, anything
// else may have come after the work.
func (e *StatusError) Fate() Fate {
	if e.Code >= 300 && e.Code <= 499 {
		return Refused
	}
	return MayHaveRun
}

// Failure returns what became of the request.
func (e *StatusError) Failure() *Failure { return &Failure{Cause: e, Fate: e.Fate()} }

// LooksForeign reports whether a server that does not know what was posted answers so:
// one of another era, or of another transport.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility; 2025-11-25,
// basic/transports, Backwards Compatibility.
func (e *StatusError) LooksForeign() bool {
	switch e.Code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}
