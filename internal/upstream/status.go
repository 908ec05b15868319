package upstream

import (
	"cmp"
	"fmt"
	"net/http"
)

// A StatusError is an HTTP error without a JSON-RPC message as its body.
type StatusError struct {
	Code int
	Note string // the text of the server's own error, shortened; empty if there is none

	Slash  bool   // it redirects to the same URL with a slash at its end
	Target string // the URL that it redirects to, without what may be secret; empty if there is none
	Login  bool   // it says who issues tokens for it
	Away   bool   // mcpbridge answers, without a server; Note says why
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("HTTP %d %s", e.Code, cmp.Or(http.StatusText(e.Code), "(unknown status)"))
	if e.Note != "" {
		text += ": " + e.Note
	}
	return text
}

// Public returns the text for clients: all of it, because the server sent it to them.
func (e *StatusError) Public() string { return e.Error() }

// AboutCredentials reports whether the status is about the gateway's own credentials, which
// clients do not know.
func (e *StatusError) AboutCredentials() bool {
	return e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden
}

// Advice returns what to do about a status that the configuration causes, after a
// semicolon.
func (e *StatusError) Advice() string {
	switch {
	case e.Code == http.StatusForbidden:
		return "; check that the credentials in the server's headers allow it"
	case e.AboutCredentials():
		return "; check the credentials in the server's headers"
	case e.Target != "" && !e.Slash:
		return "; redirects are not followed: configure the URL it leads to, " + e.Target
	case e.Slash:
		return "; redirects are not followed: put a / at the end of its URL"
	case e.Code >= 300 && e.Code <= 399:
		return "; redirects are not followed: configure the URL it leads to"
	}
	return ""
}

// Mistake is Advice where the URL is wrong; empty for what credentials would change.
func (e *StatusError) Mistake() string {
	if e.AboutCredentials() {
		return ""
	}
	return e.Advice()
}

// Step returns what to do about a status, after a semicolon, for clients, who are not told where a
// redirect leads. A status without a reason may be caused by a wrong path.
func (e *StatusError) Step() string {
	if e.Note == "" && (e.Code == http.StatusNotFound || e.Code == http.StatusMethodNotAllowed) {
		return "; check the path of its URL"
	}
	told := *e
	told.Target = ""
	return told.Advice()
}

// Fate returns whether the server may have run the request: a client error means that it
// refused it; with another error it may have run it.
func (e *StatusError) Fate() Fate {
	if e.Code >= 300 && e.Code <= 499 {
		return Refused
	}
	return MayHaveRun
}

// Failure returns the Failure of the request.
func (e *StatusError) Failure() *Failure { return &Failure{Cause: e, Fate: e.Fate()} }

// LooksForeign reports whether a status is one that a server of another era or transport
// responds with.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility; 2025-11-25, basic/transports,
// Backwards Compatibility.
func LooksForeign(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}
