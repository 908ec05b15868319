package peer

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// Header has the envelope of a forwarded request. In a response it says that the
	// envelope was refused, and which version is understood if that is why. Clients can neither send nor see it.
	Header = "Mcpbridge-Peer"

	// lifetime is how long an envelope is valid. It is also by how much the clocks of two
	// replicas may differ.
	lifetime = 15 * time.Second
	// maxEnvelope bounds the header, in bytes. A credential is at most 16 KiB.
	maxEnvelope = 32 << 10

	// firstPart begins an envelope, and has its version. A later version may send further
	// parts, which are skipped. What must not be skipped needs another version, which is
	// refused; the response says which one is understood.
	firstPart = "v=1"
	macPart   = ";mac="
)

// An Envelope says who sends a request on behalf of whom.
type Envelope struct {
	From, To string        // instances
	Identity *mcp.Identity // of the client; nil for an anonymous one
	Net      netip.Prefix  // the network of an anonymous client, for its share
	Addr     string        // the client's address, for logs
	Expires  time.Time     // of the envelope, in whole milliseconds
	Nonce    uint64        // new for each request of From, rising
	Digest   string        // of a body that was read before; empty for one that is streamed
	// Moved says that From got the request from another replica, for a session that From has
	// handed over to To. Only then, and behind Unauthenticated, is what was forwarded forwarded
	// again.
	Moved bool
	// Unauthenticated says that From has not the server, and has not asked who the client is: To
	// does, as if the client had connected to it.
	Unauthenticated bool
}

// Sender returns who sent the request to the first replica.
func (e *Envelope) Sender() mcp.Sender {
	s := mcp.Sender{Share: mcp.Share{Principal: mcp.Anonymous, Net: e.Net}}
	if e.Identity != nil {
		s.Share, s.Identity = mcp.Share{Principal: e.Identity.Principal}, e.Identity
	}
	return s
}

// fill sets on whose behalf a request is sent.
func (e *Envelope) fill(s mcp.Sender) {
	e.Identity, e.Net = s.Identity, s.Net
}

// digestOf sets the digest of a body that can be read twice.
func (e *Envelope) digestOf(r *http.Request) error {
	if r.GetBody == nil || r.ContentLength <= 0 {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it is in memory
	h := sha256.New()
	if _, err := io.Copy(h, body); err != nil {
		return err
	}
	e.Digest = base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	return nil
}

// text returns the envelope as it is signed.
func (e *Envelope) text() string {
	b := make([]byte, 0, 256)
	b = append(b, firstPart+";from="+e.From+";to="+e.To...)
	if e.Identity != nil {
		b = append(b, ";id="...)
		b = base64.RawURLEncoding.AppendEncode(b, encodeIdentity(e.Identity))
	}
	if e.Net.IsValid() {
		b = e.Net.AppendTo(append(b, ";net="...))
	}
	if isPlain(e.Addr) {
		b = append(append(b, ";addr="...), e.Addr...)
	}
	b = strconv.AppendInt(append(b, ";exp="...), e.Expires.UnixMilli(), 10)
	b = strconv.AppendUint(append(b, ";nonce="...), e.Nonce, 10)
	if e.Digest != "" {
		b = append(append(b, ";body="...), e.Digest...)
	}
	if e.Moved {
		b = append(b, ";moved=1"...)
	}
	if e.Unauthenticated {
		b = append(b, ";unauthenticated=1"...)
	}
	return string(b)
}

// isPlain reports whether a text can be the value of a part.
func isPlain(s string) bool {
	return s != "" && len(s) <= 128 && strings.IndexFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == ';' }) < 0
}

var errMalformed = errors.New("the envelope is malformed")

// parse reads what text has returned. Unknown parts are skipped: a later version may send
// them.
func parse(text string) (*Envelope, error) {
	e, seen := new(Envelope), make(map[string]bool, 10)
	for part := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || seen[name] || e.set(name, value) != nil {
			return nil, errMalformed
		}
		seen[name] = true
	}
	for _, name := range []string{"v", "from", "to", "exp", "nonce"} {
		if !seen[name] {
			return nil, errMalformed
		}
	}
	return e, nil
}

// set sets one part.
func (e *Envelope) set(name, value string) (err error) {
	switch name {
	case "v":
		if name+"="+value != firstPart {
			return errMalformed
		}
	case "from":
		e.From = value
	case "to":
		e.To = value
	case "id":
		e.Identity, err = decodeIdentity(value)
	case "net":
		e.Net, err = netip.ParsePrefix(value)
	case "addr":
		e.Addr = value
	case "exp":
		var ms int64
		ms, err = strconv.ParseInt(value, 10, 64)
		e.Expires = time.UnixMilli(ms)
	case "nonce":
		e.Nonce, err = strconv.ParseUint(value, 10, 64)
	case "body":
		e.Digest = value
	case "moved":
		e.Moved = value == "1"
	case "unauthenticated":
		e.Unauthenticated = value == "1"
	}
	return err
}

// An identity is what policy needs of a credential. The credential itself is forwarded as it
// was sent.
type identity struct {
	Principal string                     `json:"principal"`
	Issuer    string                     `json:"issuer,omitempty"`
	Subject   string                     `json:"subject,omitempty"`
	Scopes    []string                   `json:"scopes,omitempty"`
	Claims    map[string]json.RawMessage `json:"claims,omitempty"`
	Expires   int64                      `json:"expires,omitempty"` // in nanoseconds of Unix time
}

func encodeIdentity(id *mcp.Identity) []byte {
	out := identity{string(id.Principal), id.Issuer, id.Subject, id.Scopes, id.Claims, 0}
	if !id.Expires.IsZero() {
		out.Expires = id.Expires.UnixNano()
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil // claims that are no JSON: nobody has this identity then
	}
	return text
}

func decodeIdentity(value string) (*mcp.Identity, error) {
	text, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return nil, err
	}
	var in identity
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	if in.Principal == "" || in.Principal == string(mcp.Anonymous) {
		return nil, errMalformed
	}
	id := &mcp.Identity{Principal: mcp.Principal(in.Principal), Issuer: in.Issuer, Subject: in.Subject, Scopes: in.Scopes, Claims: in.Claims}
	if in.Expires != 0 {
		id.Expires = time.Unix(0, in.Expires)
	}
	return id, nil
}
