package spec

import (
	"net/url"
	"strings"
)

// IssuerMetadataURLs returns the URLs at which an authorization server may have its
// metadata, in the order in which clients try them.
//
// Spec: 2026-07-28, basic/authorization/authorization-server-discovery, Authorization
// Server Metadata Discovery.
func IssuerMetadataURLs(issuer *url.URL) []string {
	root := issuer.Scheme + "://" + issuer.Host
	path := strings.TrimRight(issuer.EscapedPath(), "/")
	urls := []string{root + "/.well-known/oauth-authorization-server" + path, root + "/.well-known/openid-configuration" + path}
	if path != "" {
		urls = append(urls, root+path+"/.well-known/openid-configuration")
	}
	return urls
}
