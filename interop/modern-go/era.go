package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const revision = "2026-07-28"

// modernOnly refuses requests without an envelope. The SDK, limited to one
// revision, refuses other modern ones by itself, but it goes on answering
// initialize.
func modernOnly(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if strings.HasPrefix(method, "notifications/") || enveloped(req.GetParams()) {
			return next(ctx, method, req)
		}
		requested := ""
		if p, ok := req.GetParams().(*mcp.InitializeParams); ok && p != nil {
			requested = p.ProtocolVersion
		}
		return nil, unsupported(requested)
	}
}

// enveloped reports whether params name a revision. They may be a nil pointer,
// whose GetMeta would panic.
func enveloped(params mcp.Params) bool {
	if v := reflect.ValueOf(params); !v.IsValid() || v.IsNil() {
		return false
	}
	_, ok := params.GetMeta()[mcp.MetaKeyProtocolVersion]
	return ok
}

func unsupported(requested string) *jsonrpc.Error {
	data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: []string{revision}, Requested: requested})
	if err != nil {
		panic(err) // strings are JSON
	}
	return &jsonrpc.Error{
		Code:    mcp.CodeUnsupportedProtocolVersion,
		Message: "this server speaks " + revision + " only, and has no handshake",
		Data:    data,
	}
}

// refuseLegacy does over HTTP what modernOnly does, with the status 400 that the
// SDK can't give there, and to notifications too.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Server Validation.
func refuseLegacy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Mcp-Protocol-Version") >= revision {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil || m.claims() {
			r.Body = io.NopCloser(bytes.NewReader(body)) // the SDK has a word for that
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, &m)
	})
}

// A message is what refuseLegacy looks at.
type message struct {
	ID     json.RawMessage `json:"id"`
	Params struct {
		ProtocolVersion string                     `json:"protocolVersion"`
		Meta            map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
}

func (m *message) claims() bool { return m.Params.Meta[mcp.MetaKeyProtocolVersion] != nil }

func refuse(w http.ResponseWriter, m *message) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(struct { // the client is gone if this fails
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", m.ID, unsupported(m.Params.ProtocolVersion)})
}
