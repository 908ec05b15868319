package front

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// forms are the forms of answer that a client takes.
type forms struct {
	json, stream bool
}

// accepted reads the Accept header. A client that sends none takes anything.
func accepted(h http.Header) forms {
	values := h["Accept"]
	if len(values) == 0 {
		return forms{true, true}
	}
	// What every SDK sends, spared the parsing.
	if len(values) == 1 && values[0] == protocol.TypeJSON+", "+protocol.TypeStream {
		return forms{true, true}
	}
	var f forms
	ranges := strings.Split(strings.Join(values, ","), ",")
	f.json = takes(ranges, protocol.TypeJSON)
	f.stream = takes(ranges, protocol.TypeStream)
	return f
}

// takes reports whether the most specific range that covers typ has a weight
// over zero.
//
// Spec: RFC 9110, 12.5.1.
func takes(ranges []string, typ string) bool {
	major, _, _ := strings.Cut(typ, "/")
	best, ok := 0, false
	for _, text := range ranges {
		name, params, err := mime.ParseMediaType(strings.TrimSpace(text))
		if err != nil {
			continue
		}
		rank := 0
		switch name {
		case typ:
			rank = 3
		case major + "/*":
			rank = 2
		case "*/*":
			rank = 1
		}
		if rank > best {
			q, err := strconv.ParseFloat(params["q"], 64)
			best, ok = rank, params["q"] == "" || err == nil && q > 0
		}
	}
	return ok
}

// acceptable reports whether an answer to method can take a form that the client
// takes: a listen stream has no other form than a stream.
func (p *httpReply) acceptable(method string) bool {
	return p.forms.stream || p.forms.json && method != spec.MethodListen
}
