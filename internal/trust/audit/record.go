package audit

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxText limits each text that a client chose, in bytes.
const maxText = 512

// A Record is one line. Empty strings and zeros are omitted.
type Record struct {
	Time      time.Time
	Principal string
	Client    string // the client's name and version
	Session   string // a hash, which does not grant access
	Server    string
	Era       string // of the client
	Method    string
	Kind      string // tool, prompt or resource
	Name      string // of the tool or prompt, or the URI of the resource
	Decision  string // allow, deny or limit
	Rule      int    // the number of the rule that decided, from 1
	Reason    string // why the request was refused
	Outcome   string // as in log messages
	Took      time.Duration
}

// append appends the line to dst.
func (r *Record) append(dst []byte) []byte {
	dst = append(dst, `{"time":"`...)
	dst = append(r.Time.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z07:00"), '"')
	for _, f := range [...]struct{ name, text string }{
		{"principal", r.Principal}, {"server", r.Server}, {"era", r.Era}, {"method", r.Method},
		{"kind", r.Kind}, {"name", withoutQuery(r.Kind, r.Name)}, {"decision", r.Decision}, {"reason", r.Reason},
		{"outcome", r.Outcome}, {"session", r.Session}, {"client", r.Client},
	} {
		if f.text != "" {
			dst = append(append(append(dst, `,"`...), f.name...), `":`...)
			dst = wire.AppendString(dst, cut(f.text))
		}
	}
	if r.Rule > 0 {
		dst = strconv.AppendInt(append(dst, `,"rule":`...), int64(r.Rule), 10)
	}
	dst = strconv.AppendFloat(append(dst, `,"ms":`...), float64(r.Took.Microseconds())/1000, 'f', 3, 64)
	return append(dst, "}\n"...)
}

// withoutQuery returns the URI of a resource without its query, which may have arguments or
// a credential.
func withoutQuery(kind, name string) string {
	if kind != "resource" {
		return name
	}
	if i := strings.IndexAny(name, "?#"); i >= 0 {
		name = name[:i+1] + "…"
	}
	scheme, rest, _ := strings.Cut(name, "://")
	host, _, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		return scheme + "://…" + rest[i:]
	}
	return name
}

// cut returns the part of a text that is within maxText.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	most := maxText
	for ; !utf8.RuneStart(text[most]); most-- {
	}
	return text[:most] + "…"
}
