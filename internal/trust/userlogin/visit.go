package userlogin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
)

// maxCookie bounds a cookie: browsers drop those of more than 4096 bytes.
const maxCookie = 4000

// The stages of a visit.
const (
	atPage   = ""  // nobody has proved anything
	atIssuer = "i" // the browser proves at the issuer who its user is
	atServer = "s" // he has, and logs in to the server
)

// A visit is what a browser does about one link. It is in a cookie of that browser alone, sealed.
type visit struct {
	ID        string        `json:"n"` // names the cookie, and begins states: there may be several visits
	Word      string        `json:"w"` // in forms: no other site knows it (CWE-352)
	Server    string        `json:"s"`
	Principal mcp.Principal `json:"p"` // whom the link is for
	Scopes    []string      `json:"o,omitempty"`
	Stage     string        `json:"a,omitempty"`
	Errand    *login.Errand `json:"e,omitempty"`
	Ends      int64         `json:"x"` // seconds since 1970
}

// idOf returns the id of the visit that a link begins, in its own browser.
func idOf(link string) string {
	sum := sha256.Sum256([]byte(link))
	return hex.EncodeToString(sum[:8])
}

var errVisit = errors.New("the browser has no visit under way")

// newVisit begins a visit by a link.
func newVisit(text string, k *link) *visit {
	return &visit{ID: idOf(text), Word: rand.Text(), Server: k.Server, Principal: k.Principal, Scopes: k.Scopes, Ends: time.Now().Add(visitLife).Unix()}
}

// state returns a state for an authorization request of the visit.
func (v *visit) state() string { return v.ID + "." + rand.Text() }

// idOfState returns the id of the visit of an answer.
func idOfState(q url.Values) string {
	id, _, _ := strings.Cut(q.Get("state"), ".")
	if len(id) != 16 || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

// secure reports whether browsers come by https.
func (l *Logins) secure() bool { return strings.HasPrefix(l.opts.Public, "https:") }

// cookieName returns the name of a visit's cookie: under https with the prefix with which no other
// host can set it.
//
// Spec: RFC 6265bis, 4.1.3.2, The "__Host-" Prefix.
func (l *Logins) cookieName(id string) string {
	if l.secure() {
		return "__Host-mcpbridge-login-" + id
	}
	return "mcpbridge-login-" + id
}

// remember sets the cookie of a visit.
func (l *Logins) remember(w http.ResponseWriter, v *visit) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c := l.cookie(v.ID)
	c.Value = base64.RawURLEncoding.EncodeToString(l.sealer.seal(forVisits, v.ID, plain))
	if c.MaxAge = int(time.Until(time.Unix(v.Ends, 0)).Seconds()); c.MaxAge <= 0 {
		return errVisit
	}
	if len(c.String()) > maxCookie {
		return errors.New("what the server wants does not fit into a cookie: it names too many scopes")
	}
	http.SetCookie(w, c)
	return nil
}

// forget removes the cookie of a visit.
func (l *Logins) forget(w http.ResponseWriter, id string) {
	c := l.cookie(id)
	c.MaxAge = -1
	http.SetCookie(w, c)
}

// cookie returns the cookie of a visit without its value. It comes with the answer of an
// authorization server, which is of another site, and so it is Lax and not Strict.
func (l *Logins) cookie(id string) *http.Cookie {
	return &http.Cookie{Name: l.cookieName(id), Path: "/", HttpOnly: true, Secure: l.secure(), SameSite: http.SameSiteLaxMode}
}

// recall returns the visit of an id that a browser has.
func (l *Logins) recall(r *http.Request, id string) (*visit, error) {
	c, err := r.Cookie(l.cookieName(id))
	if id == "" || err != nil {
		return nil, errVisit
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return nil, errVisit
	}
	plain, err := l.sealer.open(forVisits, id, sealed)
	if err != nil {
		return nil, errVisit
	}
	v := new(visit)
	if json.Unmarshal(plain, v) != nil || v.ID != id || time.Now().Unix() >= v.Ends {
		return nil, errVisit
	}
	return v, nil
}

// hasWord reports whether a form is one of the visit's page.
func (v *visit) hasWord(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.PostFormValue("word")), []byte(v.Word)) == 1
}
