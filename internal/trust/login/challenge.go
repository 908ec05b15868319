package login

import (
	"net/http"
	"strings"
)

// maxChallenge limits how much of the WWW-Authenticate headers is read, in bytes.
const maxChallenge = 16 << 10

// A Challenge is a server's challenge with 401 or 403.
//
// Spec: RFC 6750, 3; RFC 9728, 5.1.
type Challenge struct {
	Error            string
	Scope            string
	ResourceMetadata string
}

// Scopes returns the scopes in the challenge.
func (c *Challenge) Scopes() []string { return strings.Fields(c.Scope) }

// ReadChallenge returns the first challenge of the Bearer scheme in a header; zero if
// there is none.
func ReadChallenge(h http.Header) Challenge {
	text := strings.Join(h.Values("WWW-Authenticate"), ", ")
	if len(text) > maxChallenge {
		return Challenge{}
	}
	s := scanner{text}
	for s.rest != "" {
		scheme := s.token()
		if scheme == "" {
			s.skip()
			continue
		}
		params := s.params()
		if strings.EqualFold(scheme, "Bearer") {
			return Challenge{Error: params["error"], Scope: params["scope"], ResourceMetadata: params["resource_metadata"]}
		}
	}
	return Challenge{}
}

// A scanner parses a header.
//
// Spec: RFC 9110, 11.6.1.
type scanner struct{ rest string }

// skip skips one byte, if there is one.
func (s *scanner) skip() { s.rest = s.rest[min(1, len(s.rest)):] }

// token reads a token; empty if the next byte begins none.
func (s *scanner) token() string {
	s.rest = strings.TrimLeft(s.rest, " \t,")
	end := strings.IndexFunc(s.rest, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
	if end < 0 {
		end = len(s.rest)
	}
	t := s.rest[:end]
	s.rest = s.rest[end:]
	return t
}

// params reads the parameters of a challenge, up to the next challenge. Of parameters with
// the same name it uses the first.
func (s *scanner) params() map[string]string {
	params := make(map[string]string)
	for {
		before := s.rest
		name := strings.ToLower(s.token())
		s.rest = strings.TrimLeft(s.rest, " \t")
		if name == "" || !strings.HasPrefix(s.rest, "=") {
			s.rest = before // the scheme of the next challenge, or token68
			return params
		}
		s.rest = strings.TrimLeft(s.rest[1:], " \t")
		value := s.value()
		if _, ok := params[name]; !ok {
			params[name] = value
		}
	}
}

// value reads a token or a quoted string.
func (s *scanner) value() string {
	if !strings.HasPrefix(s.rest, `"`) {
		return s.token()
	}
	var value strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return value.String()
		case c == '\\' && i+1 < len(s.rest):
			i++
			value.WriteByte(s.rest[i])
		default:
			value.WriteByte(c)
		}
	}
	s.rest = ""
	return "" // it does not end
}
