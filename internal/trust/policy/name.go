package policy

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Kind is the kind of thing that an operation is about.
type Kind uint8

// The kinds. None is for operations on nothing that has a name.
const (
	None Kind = iota
	Tool
	Prompt
	Resource
	kinds
)

// String returns the name of the kind in the audit log.
func (k Kind) String() string {
	return [...]string{"", "tool", "prompt", "resource"}[k]
}

// A name is the name of a tool or a prompt, or the URI of a resource, in several forms.
// Programs do not agree which URIs are equal: a server that resolves dots or percent signs
// must not serve a resource that the text as written does not name.
type name struct {
	text  string // as written, without the escapes of JSON
	clean string // a URI in normal form; text of other names

	// The forms for rules that deny, which ignore case.
	folded      string // text
	foldedClean string // clean; empty if that is the same
	foldedBare  string // clean without query, fragment, and slashes at the end; likewise
	readings    []string
}

func newName(k Kind, text string) name {
	n := name{text: text, clean: text, folded: Fold(text)}
	if k != Resource {
		return n
	}
	var bare string
	n.clean, bare = cleanURI(text)
	if n.clean != text {
		n.foldedClean = Fold(n.clean)
	}
	if bare != n.clean {
		n.foldedBare = Fold(bare)
	}
	n.readings = readings(text)
	return n
}

// names are the patterns of a rule for one kind.
type names struct {
	text  []pattern // as written
	clean []pattern // for normal forms
	// standard are for what programs may take a URI for; only of lists that deny.
	standard []pattern
	plain    bool // both are equal
	deny     bool
}

func newNames(k Kind, deny bool, texts []string) names {
	n := names{deny: deny, plain: true}
	for _, text := range texts {
		clean := newName(k, text).clean
		if standard, ok := standardPattern(text); ok && deny && k == Resource {
			n.standard = append(n.standard, compile(standard))
		}
		if deny {
			text, clean = Fold(text), Fold(clean)
		}
		n.plain = n.plain && clean == text
		n.text = append(n.text, compile(text))
		n.clean = append(n.clean, compile(clean))
	}
	return n
}

func (n *names) empty() bool { return len(n.text) == 0 }

// match reports whether the patterns match a name. Rules that allow must match the text as
// written and its normal form; for rules that deny, one form is enough, in any case.
func (n *names) match(of *name) bool {
	if !n.deny {
		return anyMatch(n.text, of.text) && (n.plain && of.clean == of.text || anyMatch(n.clean, of.clean))
	}
	return n.denies(of.folded) || of.foldedClean != "" && n.denies(of.foldedClean) || of.foldedBare != "" && n.denies(of.foldedBare) || slices.ContainsFunc(of.readings, n.denies)
}

func (n *names) denies(folded string) bool {
	return anyMatch(n.text, folded) || !n.plain && anyMatch(n.clean, folded) || anyMatch(n.standard, folded)
}

// Fold maps names to the same text that a lenient server might take for the same.
func Fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// maxDecode is how often percent-encoding is decoded: no server's URI is encoded more
// often.
const maxDecode = 4

// cleanURI returns a URI in normal form: scheme and host in lower case, nothing encoded,
// one slash between segments, and no dot segments. bare has no query, fragment, or slashes
// at the end.
func cleanURI(uri string) (clean, bare string) {
	end := len(uri)
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		end = i
	}
	bare, rest := uri[:end], uri[end:]
	if !isClean(bare) {
		bare = cleanBare(bare)
	}
	if rest == "" {
		return bare, strings.TrimRight(bare, "/")
	}
	return bare + rest, strings.TrimRight(bare, "/")
}

// isClean reports whether a URI is certainly in normal form. Most are.
func isClean(uri string) bool {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return !strings.ContainsAny(uri, "/%\\") && uri == strings.ToLower(uri)
	}
	host, _, _ := strings.Cut(rest, "/")
	return scheme == strings.ToLower(scheme) && host == strings.ToLower(host) && host != "localhost" && !strings.ContainsAny(host, "@:") && !strings.HasSuffix(host, ".") &&
		!strings.ContainsAny(rest, "%\\") && !strings.Contains(rest, "//") && !strings.Contains(rest, "/.")
}

func cleanBare(uri string) string {
	for range maxDecode {
		decoded := decode(uri)
		if decoded == uri {
			break
		}
		uri = decoded
	}
	uri = strings.ReplaceAll(uri, `\`, "/")
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok {
		return cleanPath(uri)
	}
	scheme = strings.ToLower(scheme) + ":"
	rest, ok = strings.CutPrefix(rest, "//")
	if !ok {
		return scheme + cleanPath(rest)
	}
	host, way, ok := strings.Cut(rest, "/")
	host = cleanHost(scheme, host)
	if !ok {
		return scheme + "//" + host
	}
	return scheme + "//" + host + cleanPath("/"+way)
}

// cleanHost returns the host of a URI without user information and the default port.
func cleanHost(scheme, host string) string {
	host = strings.ToLower(host[strings.LastIndexByte(host, '@')+1:])
	switch {
	case scheme == "file:" && host == "localhost":
		return ""
	case scheme == "http:":
		host = strings.TrimSuffix(host, ":80")
	case scheme == "https:":
		host = strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ".")
}

// decode decodes percent-encoding once. Invalid encoding stays as it is: lenient servers
// decode the rest.
func decode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if b, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(b))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// cleanPath resolves dot segments, and keeps a slash at the end.
func cleanPath(p string) string {
	if p == "" {
		return p
	}
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}
