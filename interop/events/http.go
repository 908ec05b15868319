package main

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// overHTTP serves a server over Streamable HTTP. A stream is cancelled by closing it.
type overHTTP struct{ s *server }

// ServeHTTP serves one message.
func (h *overHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Method != "events/stream" {
		result, failed := h.s.answer(&m)
		respond(w, m.ID, result, failed)
		return
	}
	t, failed := m.ask()
	if failed != nil {
		respond(w, m.ID, "", failed)
		return
	}
	h.stream(w, r, m.ID, t)
}

func respond(w http.ResponseWriter, id json.RawMessage, result string, failed *failure) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case failed != nil && failed.code == codeMethodNotFound:
		w.WriteHeader(http.StatusNotFound)
	case failed != nil:
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = fmt.Fprint(w, answered(id, result, failed)) // the client has gone if it fails
}

func (h *overHTTP) stream(w http.ResponseWriter, r *http.Request, id json.RawMessage, t ticks) {
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	send := func(msg string) error {
		if _, err := fmt.Fprintf(w, "data: %s\n\n", msg); err != nil {
			return err
		}
		return rc.Flush()
	}
	if h.s.stream(r.Context(), id, t, send) {
		_ = send(ended(id)) // the client has gone if it fails
	}
}
