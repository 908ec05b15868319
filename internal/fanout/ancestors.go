package fanout

import (
	"iter"
	"strings"
)

// maxAncestors bounds the ancestors of one URI, so that a server can't make the gateway
// look up a million of them for one notification. A path segment has two ancestors, with
// and without the slash at its end.
const maxAncestors = 2 * 128

// Subresources selects how to deliver an update of a URI that has no subscriber of its
// own, but is below a URI that has one.
type Subresources string

// The values of Subresources.
const (
	SubresourcesParent Subresources = "parent"  // as an update of the ancestor
	SubresourcesAsSent Subresources = "as-sent" // with the URI that the server sent
	SubresourcesOff    Subresources = "off"     // not at all
)

// Valid reports whether s is one of the values.
func (s Subresources) Valid() bool {
	return s == SubresourcesParent || s == SubresourcesAsSent || s == SubresourcesOff
}

// Ancestors iterates over the ancestors of a URI by path segment, the nearest first. The
// next ancestor of a URI is the part up to and including the last slash of its path, or
// the URI without that slash if the slash is its end. For example, file:///a/b has the
// ancestors file:///a/, file:///a, file:/// and file://.
//
// Only slashes of the path separate segments: not those of a query or fragment, which
// belong to the last segment, nor escaped ones. The authority has no ancestor. Ancestors
// does not normalize URIs.
func Ancestors(uri string) iter.Seq[string] {
	return func(yield func(string) bool) {
		at, ok := parent(uri)
		for range maxAncestors {
			if !ok || !yield(at) {
				return
			}
			at, ok = parent(at)
		}
	}
}

// parent returns the nearest ancestor of a URI.
func parent(uri string) (string, bool) {
	path, hasAuthority := pathOf(uri)
	end := len(uri)
	if i := strings.IndexAny(uri[path:], "?#"); i >= 0 {
		end = path + i
	}
	i := strings.LastIndexByte(uri[path:end], '/')
	if i < 0 {
		return "", false
	}
	cut := path + i + 1
	if cut == len(uri) {
		cut--
	}
	if cut == path && !hasAuthority {
		return "", false // a scheme alone is not a resource
	}
	return uri[:cut], true
}

// pathOf returns the offset of a URI's path, and whether an authority precedes
// it.
//
// Spec: RFC 3986, section 3.
func pathOf(uri string) (offset int, hasAuthority bool) {
	i := strings.IndexAny(uri, ":/?#")
	if i < 0 || uri[i] != ':' {
		return 0, false // no scheme
	}
	rest := uri[i+1:]
	if !strings.HasPrefix(rest, "//") {
		return i + 1, false
	}
	if n := strings.IndexAny(rest[2:], "/?#"); n >= 0 {
		return i + 3 + n, true
	}
	return len(uri), true
}
