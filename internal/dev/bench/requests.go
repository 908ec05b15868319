//go:build linux

package main

import (
	"fmt"
	"strconv"
	"strings"
)

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// toolName is the tool whose result has so many bytes of text.
func toolName(size int) string { return "text_" + strconv.Itoa(size) }

// legacyCall is what a legacy client posts.
func legacyCall(host, path string, size int) []byte {
	return post(host, path, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+toolName(size)+`","arguments":{"path":"/srv/notes/today.md","lines":100}}}`,
		"Mcp-Session-Id: s1", "MCP-Protocol-Version: 2025-11-25")
}

// modernCall is what a modern client posts for the same.
func modernCall(host, path string, size int, headers ...string) []byte {
	return modernCallOf(host, path, toolName(size), headers...)
}

// modernCallOf is what a modern client posts for the tool of a name.
func modernCallOf(host, path, name string, headers ...string) []byte {
	return modernCallWith(host, path, name, envelope, headers...)
}

// modernCallWith is modernCallOf with another _meta.
func modernCallWith(host, path, name, meta string, headers ...string) []byte {
	return post(host, path, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+name+`","arguments":{"path":"/srv/notes/today.md","lines":100},`+meta+`}}`,
		append(headers, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: "+name)...)
}

// modernList is what a modern client posts for the first page of a list of tools.
func modernList(host, path string) []byte {
	return post(host, path, `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{`+envelope+`}}`,
		"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
}

// modernListen is what a modern client posts to hear of URIs.
func modernListen(host, path string, uris []string) []byte {
	return post(host, path, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["`+
		strings.Join(uris, `","`)+`"]},`+envelope+`}}`,
		"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: subscriptions/listen")
}

func post(host, path, body string, headers ...string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\n%s\r\nContent-Length: %d\r\n\r\n%s",
		path, host, strings.Join(headers, "\r\n"), len(body), body)
}
