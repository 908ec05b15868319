package sweep

// A server is one that programs go to.
type server struct {
	name           string
	legacy, modern bool
	few            bool     // only quick clients come, unless SWEEP is all
	env            []string // of its command over HTTP; {port} is filled in
	http           []string // {addr} and {port} are filled in
	sse            []string
	stdio          []string
	tool           string
	arguments      string
	says           string // in what each client prints of the call
	tools          int
	quirks, mends  []string // what it shows on the wire, and what mcpbridge counts of that
}

// servers are published ones, one of each era, and those on mcp-go and fastmcp.
func servers() []server {
	everything := "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
	return []server{
		{
			name: "server-everything", legacy: true, env: []string{"PORT={port}"},
			http: node(everything, "streamableHttp"), sse: node(everything, "sse"), stdio: node(everything, "stdio"),
			tool: "get-sum", arguments: `{"a":2,"b":40}`, says: "The sum of 2 and 40 is 42.", tools: 13,
		},
		{
			name: "typescript-2.4.0", modern: true,
			http: node("node/modern-server.mjs", "--http", "{addr}"), stdio: node("node/modern-server.mjs"),
			tool: "test_simple_text", arguments: `{}`, says: "simple text", tools: 36,
		},
		{
			name: "mcp-go 1.2.1", legacy: true, modern: true, few: true,
			http: []string{peer("bin/server-mcpgo"), "-http", "{addr}"}, stdio: []string{peer("bin/server-mcpgo")},
			tool: "add", arguments: `{"a":2,"b":40}`, says: "The sum is 42.", tools: 2,
		},
		{
			name: "fastmcp 4.1.2, skills", legacy: true, modern: true, few: true,
			http: []string{peer("bin/python-fastmcp/bin/python"), peer("python/fastmcp_skills.py"), "--transport", "http", "--port", "{port}"},
			tool: "add", arguments: `{"a":2,"b":40}`, says: "The sum is 42.", tools: 1,
		},
	}
}
