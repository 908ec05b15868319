package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// sessionLife is how long the page may be used before the token is asked for again.
	sessionLife = 12 * time.Hour
	// maxSessions bounds the sessions; the one that ends next makes room.
	maxSessions = 64
	// keyHeader has the key of a session, and keyProtocol precedes it as a subprotocol of a
	// WebSocket, which can't have other headers.
	keyHeader   = "Mcpbridge-Key"
	keyProtocol = "key."
)

// sessions are those of the page. A session has two secrets, and needs both. One is a
// cookie, which scripts can't read. Browsers send it to every port of the host, so that
// whoever listens on another one could use it: the other secret, the key, is in the storage
// of the page's origin alone, and the page sends it.
type sessions struct {
	// mu guards open, and is held for map work only.
	mu   sync.Mutex
	open map[[sha256.Size]byte]session // by the digest of the cookie
}

type session struct {
	key     [sha256.Size]byte // the digest
	expires time.Time
}

// begin opens a session, and returns its secrets.
func (ss *sessions) begin() (cookie, key string, expires time.Time) {
	cookie, key = rand.Text(), rand.Text()
	expires = time.Now().Add(sessionLife)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.tidyLocked()
	if ss.open == nil {
		ss.open = make(map[[sha256.Size]byte]session)
	}
	ss.open[sha256.Sum256([]byte(cookie))] = session{sha256.Sum256([]byte(key)), expires}
	return cookie, key, expires
}

// tidyLocked removes what has expired, and the oldest if there is no room.
func (ss *sessions) tidyLocked() {
	var oldest [sha256.Size]byte
	first := time.Time{}
	for id, s := range ss.open {
		if time.Now().After(s.expires) {
			delete(ss.open, id)
		} else if first.IsZero() || s.expires.Before(first) {
			oldest, first = id, s.expires
		}
	}
	if len(ss.open) >= maxSessions {
		delete(ss.open, oldest)
	}
}

// find returns the session of a request's cookie. Whoever can guess a digest of 130 random
// bits needs no look-up that takes longer.
func (ss *sessions) find(r *http.Request) (session, bool) {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return session{}, false
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, ok := ss.open[sha256.Sum256([]byte(c.Value))]
	return s, ok && time.Now().Before(s.expires)
}

// allows reports whether a request has both secrets of a session.
func (ss *sessions) allows(r *http.Request) bool {
	s, ok := ss.find(r)
	got := sha256.Sum256([]byte(keyOf(r)))
	return ok && subtle.ConstantTimeCompare(got[:], s.key[:]) == 1
}

// end ends the session of a request.
func (ss *sessions) end(r *http.Request) {
	if c, err := r.Cookie(cookieName(r)); err == nil {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		delete(ss.open, sha256.Sum256([]byte(c.Value)))
	}
}

// keyOf returns the key that a request has.
func keyOf(r *http.Request) string {
	if key := r.Header.Get(keyHeader); key != "" {
		return key
	}
	for _, text := range r.Header.Values("Sec-Websocket-Protocol") {
		for protocol := range strings.SplitSeq(text, ",") {
			if key, ok := strings.CutPrefix(strings.TrimSpace(protocol), keyProtocol); ok {
				return key
			}
		}
	}
	return ""
}

// cookieName returns the name of the cookie. It has the port, since all ports of a host
// have one store; and over TLS the prefix with which no other host may set it.
//
// Spec: RFC 6265bis, 4.1.3.2, The "__Host-" Prefix.
func cookieName(r *http.Request) string {
	name := "mcpbridge"
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "-" + port
	}
	if r.TLS != nil {
		return "__Host-" + name
	}
	return name
}

// setCookie sets the cookie; an empty value removes it.
func setCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		Secure: r.TLS != nil, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}
