package admin

import (
	"net/http"
	"net/url"
	"sync/atomic"
)

// policy says what the browser may do with whatever is served here: run the scripts and
// styles of this origin, no others and none within a page, make no markup out of text, and
// show it in no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// A guard decides who gets what.
type guard struct {
	token, metricsToken token
	made                atomic.Pointer[token] // where token is empty; see [Handler.Require]
	closed              bool                  // others reach the address, and there is no token
	sessions            sessions
	links               links
	wrongs              *wrongTokens
}

func newGuard(o Options) *guard {
	return &guard{token: token(o.Token), metricsToken: token(o.MetricsToken), closed: o.Exposed && o.Token == "", wrongs: newWrongTokens(o)}
}

// wanted returns the token that requests have to send.
func (g *guard) wanted() token {
	if made := g.made.Load(); g.token == "" && made != nil {
		return *made
	}
	return g.token
}

// sameOrigin keeps pages of other origins off, whatever they know, and says how browsers are
// to treat what is served.
func (g *guard) sameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if !ownOrigin(r) {
			http.Error(w, "pages of other origins get nothing here", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownOrigin reports whether a request comes from a page of this origin, or from no page: a
// program, or a person who follows a link. Behind a proxy the scheme may be another.
//
// Spec: RFC 6454, 7.3; Fetch Metadata Request Headers, 2.
func ownOrigin(r *http.Request) bool {
	switch origins := r.Header["Origin"]; len(origins) {
	case 0:
		site := r.Header.Get("Sec-Fetch-Site")
		return site == "" || site == "same-origin" || site == "none" || r.Method == http.MethodGet && isNavigation(r)
	case 1:
		u, err := url.Parse(origins[0])
		return err == nil && u.Host != "" && u.Host == r.Host && u.Scheme+"://"+u.Host == origins[0] // browsers send nothing else
	}
	return false
}

// isNavigation reports whether a person follows a link to the page itself.
func isNavigation(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && (r.URL.Path == "/" || r.URL.Path == "/login")
}

// metrics guards the counters, which have a token of their own.
func (g *guard) metrics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := g.token == "" && g.metricsToken == ""
		if !open && !g.metricsToken.is(bearer(r.Header)) && (g.wanted() == "" || !g.allows(r)) {
			key := "metrics_token"
			if g.metricsToken == "" {
				key = "admin_token"
			}
			challenge(w, key)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// data guards what shows or does something.
func (g *guard) data(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.closed:
			g.refuseExposed(w)
		case !g.allows(r):
			g.challenge(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// allows reports whether a request has the token, or both secrets of a session.
func (g *guard) allows(r *http.Request) bool {
	return g.wanted().allows(r) || g.sessions.allows(r)
}

// challenge answers a request without the token.
func (g *guard) challenge(w http.ResponseWriter) {
	if g.token == "" {
		challenge(w, "the token that was made at the start (mcpbridge admin, top and tail know it), or an admin_token of the configuration")
		return
	}
	challenge(w, "admin_token")
}

// refuseExposed answers a request for more than is served where others reach the address and
// there is no token.
func (g *guard) refuseExposed(w http.ResponseWriter) {
	http.Error(w, "this address can be reached from other machines: set admin_token for more than health and metrics", http.StatusForbidden)
}
