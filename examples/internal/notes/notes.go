// Package notes is an MCP server of revision 2025-11-25 in a few lines, for the examples
// to have something to serve. Its one tool, read_note, returns the text of a note.
//
// A server of one's own would be made with an SDK, whose handler takes the place of
// [Handler] in [gateway.ServerOptions].
package notes

import (
	"encoding/json"
	"errors"
	"net/http"
)

// A request is one of the client, or a notification, which has no ID.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Arguments struct {
			Name string `json:"name"`
		} `json:"arguments"`
	} `json:"params"`
}

// Handler returns the server of the notes, by name.
func Handler(notes map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "there are no streams", http.StatusMethodNotAllowed)
			return
		}
		var req request
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, "the body is no request", http.StatusBadRequest)
			return
		}
		if req.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		reply := map[string]any{"jsonrpc": "2.0", "id": req.ID}
		if result, err := answer(req, notes); err != nil {
			reply["error"] = map[string]any{"code": -32601, "message": err.Error()}
		} else {
			reply["result"] = result
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply)
	})
}

// answer returns the result of a request.
func answer(req request, notes map[string]string) (any, error) {
	switch req.Method {
	case "initialize":
		return map[string]any{
			"protocolVersion": "2025-11-25",
			"capabilities":    map[string]any{"tools": map[string]any{}},
			"serverInfo":      map[string]any{"name": "notes", "version": "1"},
		}, nil
	case "ping":
		return map[string]any{}, nil
	case "tools/list":
		return map[string]any{"tools": []any{map[string]any{
			"name":        "read_note",
			"description": "Returns the text of a note.",
			"inputSchema": map[string]any{
				"type":       "object",
				"properties": map[string]any{"name": map[string]any{"type": "string"}},
				"required":   []string{"name"},
			},
		}}}, nil
	case "tools/call":
		text, ok := notes[req.Params.Arguments.Name]
		if !ok {
			text = "there is no such note"
		}
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": !ok}, nil
	}
	return nil, errors.New("there is no such method")
}
