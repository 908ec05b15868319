package userlogin

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// visitLife is how long a link is good, and each visit that it begins.
	visitLife = 10 * time.Minute
	// Path is where the pages are, below the public URL.
	Path       = "/login/"
	returnPath = Path + "return"
	clientPath = Path + "client.json"
	// maxLink bounds the part of a link that is sealed, in bytes. Scopes that do not fit are
	// left out: the server asks for them again.
	maxLink = 1500
)

// A link says whose login at which server a page is for. It proves nothing: whoever has it has to
// prove to be that principal.
type link struct {
	Server    string        `json:"s"`
	Principal mcp.Principal `json:"p"`
	Scopes    []string      `json:"o,omitempty"`
	Ends      int64         `json:"e"` // seconds since 1970
}

var errLink = errors.New("the link is not good any more")

// linkURL returns the URL of a link. What is in it can't be read.
func (l *Logins) linkURL(k *link) string {
	plain, _ := json.Marshal(k) // marshaling texts never fails
	if len(plain) > maxLink {
		k.Scopes = nil
		plain, _ = json.Marshal(k)
	}
	return l.opts.Public + Path + base64.RawURLEncoding.EncodeToString(l.sealer.seal(forLinks, "", plain))
}

// openLink reads the last part of a link's path.
func (l *Logins) openLink(text string) (*link, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errLink
	}
	plain, err := l.sealer.open(forLinks, "", sealed)
	if err != nil {
		return nil, errLink
	}
	k := new(link)
	if json.Unmarshal(plain, k) != nil || time.Now().Unix() >= k.Ends {
		return nil, errLink
	}
	return k, nil
}

// redirect is where authorization servers send browsers back to.
func (l *Logins) redirect() string { return l.opts.Public + returnPath }

// document is the URL of the client id metadata document; empty if nobody else could read it.
func (l *Logins) document() string {
	if strings.HasPrefix(l.opts.Public, "https:") {
		return l.opts.Public + clientPath
	}
	return ""
}

// hostOf returns the host of a URL; empty if it has none.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}
