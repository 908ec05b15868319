package gateway

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway/internal/router"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// ServerRoom implements [cmdhook.Inner].
func (g inner) ServerRoom(name string) *status.ServerRoom {
	room := &status.ServerRoom{Server: status.Server{Name: name}, Can: []string{}, Snippets: []status.Snippet{}}
	if !g.outer.configured(room) || !router.FillServerRoom(g.Gateway, room) {
		return nil
	}
	room.Limits = g.outer.metrics.LimitsHit(name, status.MaxLimits)
	return room
}

// configured fills in what the options of a server say; it reports false if there are none.
func (g *Gateway) configured(room *status.ServerRoom) bool {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	p := g.current.find(room.Name)
	if p == nil {
		return false
	}
	s := g.current.options(room.Name)
	room.Reached, room.Dir, room.Isolation = reached(s), s.Dir, string(s.Isolation)
	room.Env, room.Headers = slices.Sorted(maps.Keys(s.Env)), slices.Sorted(maps.Keys(namesOf(s.Header)))
	room.Credentials = s.UpstreamAuth.words()
	if s.Pin != PinOff {
		room.Pin = string(s.Pin)
	}
	room.Can = append(room.Can, "restart")
	if p.login != nil {
		room.Can = append(room.Can, "login", "logout")
	}
	return true
}

// reached returns the command of a server, as a shell would read it, or its URL, without what may be
// a credential.
func reached(s *ServerOptions) string {
	switch {
	case len(s.Command) > 0:
		words := bareCommand(s.Command)
		for i, word := range words {
			if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`*?;&|<>()") {
				words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
			}
		}
		return strings.Join(words, " ")
	case s.URL != "":
		return shownURL(s.URL)
	}
	return "in this process"
}

// shownURL returns a URL without user information, and with the names of its query alone.
func shownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return redact.Hidden
	}
	shown := redact.Looks((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
	for i, name := range slices.Sorted(maps.Keys(u.Query())) {
		shown += map[bool]string{true: "?", false: "&"}[i == 0] + url.QueryEscape(name) + "=" + redact.Hidden
	}
	return shown
}

// words says in a few words what a is.
func (a *UpstreamAuth) words() string {
	switch {
	case a == nil:
		return ""
	case a.ClientCredentials != nil:
		return "tokens of the gateway itself, from " + a.ClientCredentials.Issuer
	case a.TokenExchange != nil:
		return "a token for each caller's, from " + a.TokenExchange.Issuer
	case a.perPrincipal():
		return "the login of each principal"
	case a.Login != nil && a.Login.SharedIdentity:
		return "a stored login that everybody uses"
	case a.Login != nil:
		return fmt.Sprintf("the stored login of %s", a.Login.Principal)
	case a.Passthrough:
		return "the token of each caller"
	}
	return "a token of the configuration"
}
