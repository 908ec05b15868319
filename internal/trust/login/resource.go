package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

const wellKnownResource = "/.well-known/oauth-protected-resource"

// A resource is a server's protected resource metadata.
//
// Spec: RFC 9728, 2.
type resource struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
}

// errNoMetadata says that a server has no metadata at any well-known URL.
var errNoMetadata = errors.New("the server has no protected resource metadata (RFC 9728)")

// ErrNoIssuer says that nothing names an authorization server: neither the server's metadata,
// nor its origin, where servers of 2025-03-26 have their own.
var ErrNoIssuer = errors.New("the server does not say who issues tokens for it")

// discoverResource fetches the metadata of a server: from the URL in its challenge, or from
// the well-known URLs.
//
// Spec: 2026-07-28, basic/authorization/authorization-server-discovery, Protected Resource
// Metadata Discovery Requirements.
func discoverResource(ctx context.Context, c *fetch.Client, server *url.URL, challenge Challenge) (*resource, error) {
	if at := challenge.ResourceMetadata; at != "" {
		r, err := fetchResource(ctx, c, server, at)
		if err != nil {
			return nil, fmt.Errorf("reading the metadata that the server names: %w", err)
		}
		return r, nil
	}
	for _, at := range resourceURLs(server) {
		r, err := fetchResource(ctx, c, server, at)
		if status := (*fetch.StatusError)(nil); errors.As(err, &status) && status.Code >= 400 && status.Code <= 499 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the server's metadata: %w", err)
		}
		return r, nil
	}
	return nil, errNoMetadata
}

// resourceURLs returns the well-known URLs of a server's metadata: with its path, and
// without.
func resourceURLs(server *url.URL) []string {
	root := origin(server) + wellKnownResource
	if strings.Trim(server.EscapedPath(), "/") == "" {
		return []string{root}
	}
	return []string{root + server.EscapedPath(), root}
}

// fetchResource fetches a document and checks that it is about the server. It may be about
// more, such as the whole origin, but only if it is at the well-known URL of that:
// otherwise one of several servers of an origin could get a token that all of them accept.
//
// Spec: RFC 9728, 3.3, 7.3.
func fetchResource(ctx context.Context, c *fetch.Client, server *url.URL, at string) (*resource, error) {
	r, about, err := readResource(ctx, c, at)
	if err != nil || isSame(about, server) {
		return r, err
	}
	if !contains(about, server) {
		return nil, fmt.Errorf("it is about another resource than the server's URL: %s", shown(r.Resource))
	}
	own, claimed := resourceURLs(about)[0], r.Resource
	if own == at {
		return r, nil
	}
	if r, _, err = readResource(ctx, c, own); err == nil && r.Resource != claimed {
		err = errors.New("it is about another resource")
	}
	if err != nil {
		return nil, fmt.Errorf("it is about %s, and the metadata of that does not confirm it: %w", shown(claimed), err)
	}
	return r, nil
}

// readResource fetches a document, and returns it with the URL that it is about.
func readResource(ctx context.Context, c *fetch.Client, at string) (*resource, *url.URL, error) {
	r := new(resource)
	if err := c.JSON(ctx, at, r); err != nil {
		return nil, nil, err
	}
	about, err := url.Parse(r.Resource)
	switch {
	case err != nil || about.Host == "" || about.Fragment != "" || about.User != nil:
		return nil, nil, errors.New("it names no resource, or not by an absolute URL")
	case len(r.AuthorizationServers) == 0 || r.AuthorizationServers[0] == "":
		return nil, nil, errors.New("it names no authorization server")
	}
	return r, about, nil
}

// isSame reports whether two URLs name the same resource: they may differ in the case of
// scheme and host, in a slash at the end, and in the query of the configured URL.
func isSame(about, server *url.URL) bool {
	return origin(about) == origin(server) && (about.RawQuery == "" || about.RawQuery == server.RawQuery) &&
		strings.TrimRight(about.EscapedPath(), "/") == strings.TrimRight(server.EscapedPath(), "/")
}

// contains reports whether a server's URL is below another of the same origin.
func contains(about, server *url.URL) bool {
	above := strings.TrimRight(about.EscapedPath(), "/") + "/"
	return origin(about) == origin(server) && about.RawQuery == "" && strings.HasPrefix(server.EscapedPath(), above)
}

// origin returns scheme and host of a URL, in lower case and without the scheme's default
// port.
func origin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return scheme + "://" + host
}

// Canonical returns the resource URI of a server without metadata.
//
// Spec: 2026-07-28, basic/authorization, Canonical Server URI.
func Canonical(server *url.URL) string {
	path := server.EscapedPath()
	if path == "/" {
		path = ""
	}
	return origin(server) + path
}
