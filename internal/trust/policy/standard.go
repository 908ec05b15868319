package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
)

// special are the schemes of which programs read many spellings as one URL.
//
// Spec: WHATWG URL, 4.2, special schemes.
var special = []string{"file", "http", "https", "ws", "wss"}

// parser reads URLs as browsers and Node.js do.
var parser = url.NewParser()

// specialScheme returns the scheme of a URI in lower case; false if it is none of those.
func specialScheme(uri string) (string, bool) {
	scheme, _, ok := strings.Cut(uri, ":")
	scheme = strings.ToLower(strings.TrimSpace(scheme))
	return scheme, ok && slices.Contains(special, scheme)
}

// HasSpellings reports whether all spellings of the URIs of a pattern that denies are known:
// the schemes of others are read as each server likes.
func HasSpellings(pattern string) bool {
	_, ok := specialScheme(pattern)
	return ok || strings.Trim(pattern, "*") == ""
}

// readings returns what programs may take the URI of a denied resource for, folded: as the
// WHATWG says, and as RFC 3986 does, decoded as often as it may be. A file has no host:
// many ignore it. It is empty for URIs of other schemes, and for those that all read alike.
func readings(uri string) []string {
	scheme, ok := specialScheme(uri)
	if !ok || isOrdinary(scheme, uri) {
		return nil
	}
	var out []string
	add := func(host, way, rest string) {
		for range maxDecode + 1 {
			for _, p := range []string{way, strings.ReplaceAll(way, `\`, "/")} {
				clean := scheme + "://" + host + path.Clean("/"+p)
				for _, form := range []string{clean, clean + "/", clean + rest} {
					if form = Fold(form); !slices.Contains(out, form) {
						out = append(out, form)
					}
				}
			}
			way = decode(way)
		}
	}
	host, way, rest := plainly(scheme, uri)
	if u, err := parser.Parse(uri); err == nil {
		standard := hostOf(scheme, u)
		add(standard, u.Pathname(), u.Search())
		if standard != host {
			add(standard, way, rest)
		}
	}
	add(host, way, rest)
	return out
}

// hostOf returns the host of a URL, and its port unless it is the default one.
func hostOf(scheme string, u *url.Url) string {
	if scheme == "file" {
		return ""
	}
	return cleanHost(scheme+":", u.Host())
}

// plainly splits a URI at its first delimiters, as RFC 3986 does.
func plainly(scheme, uri string) (host, way, rest string) {
	_, way, _ = strings.Cut(uri, ":")
	if i := strings.IndexAny(way, "?#"); i >= 0 {
		way, rest = way[:i], way[i:]
	}
	if below, ok := strings.CutPrefix(way, "//"); ok {
		host, way, _ = strings.Cut(below, "/")
	}
	if scheme == "file" {
		return "", way, rest
	}
	if name, port, ok := strings.Cut(host[strings.LastIndexByte(host, '@')+1:], ":"); ok && !strings.Contains(port, ":") {
		host = name
		if port = strings.TrimLeft(port, "0"); port != "" {
			host += ":" + port
		}
	}
	return cleanHost(scheme+":", host), way, rest
}

// isOrdinary reports whether all programs read a URI as it is written, as most are.
func isOrdinary(scheme, uri string) bool {
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '|' }
	if !isClean(uri) || !strings.HasPrefix(uri, scheme+"://") || strings.IndexFunc(uri, odd) >= 0 {
		return false
	}
	host, _, _ := strings.Cut(uri[len(scheme)+len("://"):], "/")
	if scheme == "file" || host == "" {
		return scheme == "file" && host == ""
	}
	last := host[strings.LastIndexByte(host, '.')+1:] // of an IPv4 address it is a number
	return last != "" && last[0] >= 'a' && last[0] <= 'z' && !strings.ContainsAny(host, "?#")
}

// standardPattern returns a pattern for the URIs of readings, folded; false if the text is
// none that can be parsed.
func standardPattern(text string) (string, bool) {
	scheme, ok := specialScheme(text)
	if !ok {
		return "", false
	}
	u, err := parser.Parse(text)
	if err != nil {
		return "", false
	}
	way := u.Pathname()
	for range maxDecode {
		way = decode(way)
	}
	if way = cleanPath(way); way == "/" && strings.HasSuffix(text, "*") {
		way = "" // the star was a part of the host
		if scheme == "file" {
			return "", false
		}
	}
	return Fold(scheme + "://" + hostOf(scheme, u) + way + u.Search()), true
}
