package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway"
)

// notes is a server of revision 2025-11-25, as small as can be.
func notes(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text := string(body)
	id := "null"
	if _, rest, ok := strings.Cut(text, `"id":`); ok {
		id = strings.TrimRight(strings.SplitN(rest, ",", 2)[0], "}")
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case strings.Contains(text, `"initialize"`):
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1"}}}`, id)
	case strings.Contains(text, `"tools/call"`):
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"buy milk"}]}}`, id)
	case id == "null":
		w.WriteHeader(http.StatusAccepted)
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, id)
	}
}

// call is a request of revision 2026-07-28.
func call(url, token string) (int, string) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"example","version":"1"}}}}`
	req, _ := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": token,
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read",
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	_, text, _ := strings.Cut(string(answer), `"text":"`)
	text, _, _ = strings.Cut(text, `"`)
	return resp.StatusCode, text
}

// A server of 2025-11-25 in this process is called by a client of 2026-07-28.
func Example() {
	gateway, err := gateway.New(gateway.Options{
		Servers: []gateway.ServerOptions{{Name: "notes", Handler: http.HandlerFunc(notes)}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	front := httptest.NewServer(gateway)
	fmt.Println(call(front.URL+"/mcp/notes", ""))

	gateway.EndStreams()
	front.Close()
	fmt.Println(gateway.Shutdown(context.Background()))
	// Output:
	// 200 buy milk
	// <nil>
}

// Requests are on behalf of whoever a token belongs to. Those of different principals share
// no session with the server.
func ExampleAuthenticatorFunc() {
	names := map[string]string{"Bearer s3cret-1": "ada", "Bearer s3cret-2": "bob"}
	gateway, err := gateway.New(gateway.Options{
		Servers: []gateway.ServerOptions{{Name: "notes", Handler: http.HandlerFunc(notes)}},
		Authenticator: gateway.AuthenticatorFunc(func(r *http.Request) (string, error) {
			name, ok := names[r.Header.Get("Authorization")]
			if !ok {
				return "", &gateway.AuthError{Challenge: `Bearer realm="notes"`, Reason: "unknown token"}
			}
			return name, nil
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	front := httptest.NewServer(gateway)
	fmt.Println(call(front.URL+"/mcp/notes", "Bearer s3cret-1"))
	status, _ := call(front.URL+"/mcp/notes", "Bearer wrong")
	fmt.Println(status)

	gateway.EndStreams()
	front.Close()
	_ = gateway.Shutdown(context.Background())
	// Output:
	// 200 buy milk
	// 401
}

// A snapshot says which servers were reached.
func ExampleGateway_Snapshot() {
	gateway, err := gateway.New(gateway.Options{
		Servers: []gateway.ServerOptions{{Name: "docs", URL: "https://docs.example.com/mcp"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, server := range gateway.Snapshot().Servers {
		fmt.Println(server.Name, server.State)
	}
	_ = gateway.Shutdown(context.Background())
	// Output: docs starting
}

// What can't be served is an error of New.
func ExampleNew() {
	_, err := gateway.New(gateway.Options{
		Servers: []gateway.ServerOptions{{Name: "docs", URL: "https://docs.example.com/mcp", Command: []string{"docs"}}},
	})
	fmt.Println(err)
	// Output: mcpbridge: server "docs": want exactly one of URL, Command and Handler
}
