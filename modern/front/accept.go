package front

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// forms are the forms of a response that a client accepts.
type forms struct {
	json, stream bool
}

// accepted reads the Accept header. Without it, a client accepts everything.
func accepted(h http.Header) forms {
	values := h["Accept"]
	if len(values) == 0 {
		return forms{true, true}
	}
	// All SDKs send this, so it needs no parsing.
	if len(values) == 1 && values[0] == spec.AcceptBoth {
		return forms{true, true}
	}
	var f forms
	ranges := strings.Split(strings.Join(values, ","), ",")
	f.json = takes(ranges, spec.TypeJSON)
	f.stream = takes(ranges, spec.TypeStream)
	return f
}

// takes reports whether the most specific range that includes typ has a weight above zero.
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

// acceptable reports whether the response to method can have a form that the client
// accepts: that to a listen request is always a stream.
func (hr *httpReply) acceptable(method string) bool {
	return hr.forms.stream || hr.forms.json && method != spec.MethodListen
}
