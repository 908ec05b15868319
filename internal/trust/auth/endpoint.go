package auth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// WellKnown is the prefix of the path of a resource's metadata.
//
// Spec: RFC 9728, 3.1.
const WellKnown = "/.well-known/oauth-protected-resource"

// An Endpoint is the endpoint of one server. It is immutable.
type Endpoint struct {
	// Resource is the URL by which clients know the endpoint, byte for byte; empty if it is
	// unknown.
	Resource string
	// MetadataURL and MetadataPath are the URL and the path of its metadata; empty if there
	// is none.
	MetadataURL, MetadataPath string
	// Share returns who counts as the sender of a request whose credential is not verified
	// yet; nil means the address that has sent it.
	Share func(*http.Request) mcp.Share
}

// NewEndpoint returns the endpoint with a public URL.
func NewEndpoint(publicURL string) (*Endpoint, error) {
	u, err := url.Parse(publicURL)
	switch {
	case err != nil:
		return nil, errors.New("the public URL is not a URL")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil:
		return nil, fmt.Errorf("the public URL %q is not one of https or http", u.Redacted())
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(publicURL, "#"):
		return nil, fmt.Errorf("the public URL %q has a query or a fragment", publicURL)
	}
	path := WellKnown + strings.TrimSuffix(u.EscapedPath(), "/")
	return &Endpoint{Resource: publicURL, MetadataURL: u.Scheme + "://" + u.Host + path, MetadataPath: path}, nil
}
