package groups

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A member is a server nobody here wrote but for what it tells, or one on an SDK.
type member struct {
	name    string
	path    string   // of its endpoint; empty if it speaks over pipes
	env     []string // {port} is filled in
	argv    []string // {addr}, {port} and {dir} are filled in
	asks    []step
	watches *watching
}

// A step is one request of the round, with own names. {dir} and {client} are filled in.
type step struct {
	method, params string
	progress       int  // how often the server tells of it; 0: nobody asks
	legacy         bool // modern clients can't
	verbatim       bool // the server gives its arguments back as they were written
}

// A watching is a resource, and the call that changes it.
type watching struct {
	uri, tool, arguments string
	before               string // a call that has to come before, if one has
}

const everything = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"

func call(tool, arguments string) step {
	return step{method: "tools/call", params: fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)}
}

func get(prompt, arguments string) step {
	return step{method: "prompts/get", params: fmt.Sprintf(`{"name":%q,"arguments":%s}`, prompt, arguments)}
}

func read(uri string) step {
	return step{method: "resources/read", params: fmt.Sprintf(`{"uri":%q}`, uri)}
}

func complete(kind, name, argument, value string) step {
	key := map[string]string{"ref/prompt": "name", "ref/resource": "uri"}[kind]
	return step{method: "completion/complete", params: fmt.Sprintf(`{"ref":{"type":%q,%q:%q},"argument":{"name":%q,"value":%q}}`, kind, key, name, argument, value)}
}

// members are those of the group, in its order.
func members() []member {
	list := []member{
		{
			name: "everything", path: "/mcp", env: []string{"PORT={port}"}, argv: node(everything, "streamableHttp"),
			asks: []step{
				call("echo", `{"message":"grüße \"quoted\" 🦉"}`), call("get-sum", `{"a":2,"b":40}`), call("get-structured-content", `{"location":"Chicago"}`),
				call("get-tiny-image", `{}`), call("get-annotated-message", `{"messageType":"error","includeImage":true}`),
				call("get-resource-links", `{"count":2}`), call("get-resource-reference", `{"resourceType":"Text","resourceId":1}`),
				call("get-sum", `{"a":"two"}`), call("no-such-tool", `{}`),
				{method: "tools/call", params: `{"name":"trigger-long-running-operation","arguments":{"duration":0.2,"steps":2}}`, progress: 2},
				call("trigger-elicitation-request", `{}`),
				get("simple-prompt", `{}`), get("args-prompt", `{"city":"Austin","state":"Texas"}`), get("no-such-prompt", `{}`),
				read("demo://resource/static/document/startup.md"), read("demo://resource/dynamic/text/1"),
				complete("ref/prompt", "completable-prompt", "department", "E"), complete("ref/resource", "demo://resource/dynamic/text/{resourceId}", "resourceId", "1"),
				{method: "logging/setLevel", params: `{"level":"warning"}`, legacy: true}, {method: "ping", params: `{}`, legacy: true},
			},
		},
		{
			name: "memory", env: []string{"MEMORY_FILE_PATH={dir}.memory.jsonl"}, argv: node("node/node_modules/@modelcontextprotocol/server-memory/dist/index.js"),
			asks: []step{
				call("open_nodes", `{"names":["{client}"]}`),
				call("create_entities", `{"entities":[{"name":"{client}","entityType":"cell","observations":["hütte"]}]}`),
				call("open_nodes", `{"names":["{client}"]}`), read("memory://knowledge-graph"), call("delete_entities", `{"entityNames":["{client}"]}`),
				call("open_nodes", `{"names":["{client}"]}`),
			},
			watches: &watching{
				uri: "memory://knowledge-graph", tool: "delete_entities", arguments: `{"entityNames":["{client}"]}`,
				before: `{"name":"create_entities","arguments":{"entities":[{"name":"{client}","entityType":"cell","observations":[]}]}}`,
			},
		},
		{
			name: "files", argv: node("node/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", "{dir}"),
			asks: []step{
				call("read_text_file", `{"path":"{dir}/notes.txt","head":1}`), call("list_directory", `{"path":"{dir}"}`),
				call("search_files", `{"path":"{dir}","pattern":"*.txt"}`), call("read_text_file", `{"path":"/etc/passwd"}`), call("list_allowed_directories", `{}`),
			},
		},
		{
			name: "modern-go", path: "/mcp", argv: []string{peer("bin/modern-go"), "-http", "{addr}", "-page", "20"},
			asks:    append(modernAsks(), read("test://static-text"), read("test://static-binary"), read("test://template/7/data"), read("res://lost"), call("busy", `{}`)),
			watches: &watching{uri: "res://item/000", tool: "touch", arguments: `{"uris":["res://item/000"]}`},
		},
		{name: "typescript", path: "/mcp", argv: node("node/modern-server.mjs", "--http", "{addr}"), asks: modernAsks()},
		{
			name: "fastmcp", path: "/mcp", argv: python("python-fastmcp", "fastmcp_server.py", "--transport", "http", "--port", "{port}"),
			asks: []step{call("greet", `{"name":"Ada"}`), call("tally", `{"label":"none"}`), call("greet", `{}`)},
		},
		{
			name: "memos", path: "/mcp", argv: python("python-1", "server1.py", "--transport", "http", "--port", "{port}"),
			asks: []step{
				call("echo", `{"text":"東京"}`), call("add", `{"a":1,"b":2}`), call("ask", `{"question":"Who?"}`),
				{method: "tools/call", params: `{"name":"count","arguments":{}}`, progress: 3},
			},
		},
	}
	if exists("bin/python-1/bin/mcp-server-time") {
		list = append(list, member{name: "time", argv: []string{peer("bin/python-1/bin/mcp-server-time"), "--local-timezone", "Etc/UTC"}, asks: []step{
			call("convert_time", `{"source_timezone":"Etc/UTC","time":"12:00","target_timezone":"Asia/Tokyo"}`), call("get_current_time", `{"timezone":"Nowhere"}`),
		}})
	}
	return list
}

// modernAsks are of the two servers of 2026-07-28 alone.
func modernAsks() []step {
	return []step{
		call("test_simple_text", `{}`), call("test_multiple_content_types", `{}`), call("test_error_handling", `{}`), call("links", `{}`),
		{method: "tools/call", params: `{"name":"test_x_mcp_header","arguments":{"region":"Zürich 東京","urgent":true}}`, verbatim: true}, call("object_output", `{}`),
		call("test_input_required_result_multi_round", `{}`), call("test_elicitation", `{"message":"Who is there?"}`),
		get("test_prompt_with_arguments", `{"arg1":"hello","arg2":"world"}`), get("test_input_required_result_prompt", `{}`),
		{method: "tools/call", params: `{"name":"test_tool_with_progress","arguments":{}}`, progress: 3},
	}
}

// lists are those that are compared whole.
var lists = []struct{ method, of, key string }{
	{"tools/list", "tools", "name"},
	{"prompts/list", "prompts", "name"},
	{"resources/list", "resources", "uri"},
	{"resources/templates/list", "resourceTemplates", "uriTemplate"},
}

// startMembers starts those that listen, and returns servers: of the configuration. dir has the
// files of members.
func startMembers(t *testing.T, list []member, dir string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range list {
		const more = "timeouts: {connect: 3m}"
		if m.path != "" {
			addr, _ := startServer(t, m.name, m.env, m.argv)
			fmt.Fprintf(&b, "  %s: {url: %q, %s}\n", m.name, "http://"+addr+m.path, more)
			continue
		}
		argv, env := filled(m.argv, "", dir), make(map[string]string)
		for _, e := range filled(m.env, "", dir) {
			k, v, _ := strings.Cut(e, "=")
			env[k] = v
		}
		fmt.Fprintf(&b, "  %s: {command: %q, args: %s, env: %s, %s}\n", m.name, argv[0], inline(argv[1:]), inline(env), more)
	}
	return b.String()
}

// namesOf returns the names of members, as YAML.
func namesOf(list []member) string {
	var names []string
	for _, m := range list {
		names = append(names, m.name)
	}
	return inline(names)
}

// shown returns params with the name that clients of a group see.
func (s *step) shown(prefix string) json.RawMessage {
	params := s.params
	switch s.method {
	case "tools/call", "prompts/get":
		params = strings.Replace(params, `"name":"`, `"name":"`+prefix, 1)
	case "completion/complete":
		params = strings.Replace(params, `"type":"ref/prompt","name":"`, `"type":"ref/prompt","name":"`+prefix, 1)
	}
	return json.RawMessage(params)
}
