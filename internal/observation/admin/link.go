package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

const (
	// linkLife is how long a link is good.
	linkLife = time.Minute
	// maxLinks bounds the links that nobody has used; the one that ends next makes room.
	maxLinks = 16
)

// links open the page for whoever has one: a browser needs no token. The code of a link is
// good once, and stands in its fragment, which browsers send nowhere: whoever fetches the
// link to preview it does not use it up, and no log has it.
type links struct {
	// mu guards codes, and is held for map work only.
	mu    sync.Mutex
	codes map[[sha256.Size]byte]time.Time // when each ends, by its digest
}

// add makes a code.
func (l *links) add() (code string, expires time.Time) {
	code, expires = rand.Text(), time.Now().Add(linkLife)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.codes == nil {
		l.codes = make(map[[sha256.Size]byte]time.Time)
	}
	l.codes[sha256.Sum256([]byte(code))] = expires
	for len(l.codes) > maxLinks {
		l.dropLocked()
	}
	return code, expires
}

// dropLocked removes the code that ends first.
func (l *links) dropLocked() {
	var oldest [sha256.Size]byte
	first := time.Time{}
	for of, expires := range l.codes {
		if first.IsZero() || expires.Before(first) {
			oldest, first = of, expires
		}
	}
	delete(l.codes, oldest)
}

// use reports whether a code is good, and has it be good no longer.
func (l *links) use(code string) bool {
	of := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	expires, ok := l.codes[of]
	delete(l.codes, of)
	return ok && time.Now().Before(expires)
}

// link serves a path to the page, for whoever has the token itself: a session can't make
// another one, which would outlast it.
func (g *guard) link(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Path    string    `json:"path"`
		Expires time.Time `json:"expires,omitzero"` // never, where no token is wanted
	}
	switch want := g.wanted(); {
	case g.closed:
		g.refuseExposed(w)
		return
	case !want.allows(r):
		g.challenge(w)
		return
	case want == "":
		body.Path = "/"
	default:
		body.Path = "/login#"
		var code string
		code, body.Expires = g.links.add()
		body.Path += code
	}
	answer(w, http.StatusOK, body)
}
