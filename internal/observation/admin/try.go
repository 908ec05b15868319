package admin

import (
	"context"
	"net/http"
	"strings"
)

// maxTries is how many requests to endpoints are served at a time: a page has a stream, a call
// and an answer to a question under way, and 16 may look.
const maxTries = 64

// try passes a request of the page to the endpoint of a server, of whichever era the client is
// that it plays. It lasts at most as long as a call of POST /api/call.
func (a *api) try(w http.ResponseWriter, r *http.Request) {
	if why, status := unfit(r); why != "" {
		http.Error(w, why, status)
		return
	}
	if a.tries.Add(1) > maxTries {
		a.tries.Add(-1)
		http.Error(w, "too many calls are tried at this address already; end one, or close a page", http.StatusServiceUnavailable)
		return
	}
	defer a.tries.Add(-1)
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	a.opts.Gateway.Try(w, r.WithContext(ctx), r.PathValue("server"))
}

// unfit says why a request is none that a client sends to an endpoint, with the status; empty
// otherwise. A POST of another type than JSON is what a form of any page can send.
func unfit(r *http.Request) (why string, status int) {
	switch r.Method {
	case http.MethodPost:
		if !isJSON(r) {
			return "send JSON", http.StatusUnsupportedMediaType
		}
	case http.MethodGet:
		if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") || r.Header.Get("Upgrade") != "" {
			return "a GET is for an event stream", http.StatusNotAcceptable
		}
	case http.MethodDelete:
	default:
		return "POST messages, GET a stream, DELETE a session", http.StatusMethodNotAllowed
	}
	return "", 0
}
