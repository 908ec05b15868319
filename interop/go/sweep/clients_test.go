package sweep

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// A place is where a client goes: to a URL, over Streamable HTTP or HTTP+SSE, or to a command that it starts.
type place struct {
	url  string
	sse  bool
	argv []string
}

// A program is a client. list and call return command lines that print tools, and the
// result of one. in is its standard input, if it wants one.
type program struct {
	name string
	// sse and stdio say what it speaks beside Streamable HTTP.
	sse, stdio bool
	quick      bool // it takes less than a second
	slow       bool // it takes several: HTTP+SSE is left out unless SWEEP is all
	// eras are those in which it works directly.
	legacy, modern bool
	list, call     func(at place, s *server) (argv []string, in any)
	// quirks are what it shows, by how often in one list and one call over HTTP.
	quirks map[string]int
}

// all reports whether nothing is left out.
var all = os.Getenv("SWEEP") == "all"

// programs are the clients of the sweep; none has a quirk but those that are named.
func programs(t *testing.T) []program {
	list := []program{
		{name: "inspector 2.12.0, legacy", sse: true, stdio: true, legacy: true, list: inspector("legacy", false), call: inspector("legacy", true)},
		{name: "inspector 2.12.0, modern", stdio: true, modern: true, list: inspector("modern", false), call: inspector("modern", true)},
		{name: "inspector 2.12.0, auto", quick: true, stdio: true, legacy: true, modern: true, list: inspector("auto", false), call: inspector("auto", true)},
		{name: "mcporter 0.12.3", stdio: true, legacy: true, list: mcporterList, call: mcporterCall},
		{name: "fastmcp 4.1.2", slow: true, sse: true, stdio: true, legacy: true, modern: true, list: fastmcp("list"), call: fastmcp("call")},
	}
	tour := peer("bin/tour-rmcp")
	if _, err := os.Stat(tour); err != nil {
		t.Log("there is no client on the Rust SDK: interop/build makes it where there is cargo")
		return list
	}
	for _, era := range []string{"legacy", "modern", "auto"} {
		list = append(list, program{
			name: "rmcp 3.11.0, " + era, quick: true, stdio: true, legacy: era != "modern", modern: era != "legacy",
			list: rmcp(tour, era), call: rmcp(tour, era),
		})
	}
	return list
}

func inspector(era string, call bool) func(place, *server) ([]string, any) {
	return func(at place, s *server) ([]string, any) {
		argv := node("programs/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", "--cli", "--format", "json", "-q", "--protocol-era", era)
		if call {
			argv = append(argv, "--method", "tools/call", "--tool-name", s.tool, "--tool-args-json", s.arguments)
		} else {
			argv = append(argv, "--method", "tools/list")
		}
		switch {
		case at.url == "":
			return append(append(argv, "--transport", "stdio"), at.argv...), nil
		case at.sse:
			return append(argv, "--transport", "sse", "--server-url", at.url), nil
		}
		return append(argv, "--transport", "http", "--server-url", at.url), nil
	}
}

func mcporter(at place, words ...string) []string {
	argv := append(node("programs/node_modules/mcporter/dist/cli.js"), words...)
	argv = append(argv, "--no-oauth", "--name", "swept")
	if at.url != "" {
		return append(argv, "--allow-http", "--http-url", at.url)
	}
	return append(argv, "--stdio", strings.Join(at.argv, " "))
}

func mcporterList(at place, _ *server) ([]string, any) { return mcporter(at, "list", "--json"), nil }

func mcporterCall(at place, s *server) ([]string, any) {
	return mcporter(at, "call", "--output", "json", "--tool", s.tool, "--args", s.arguments), nil
}

// fastmcp is the command line of its package.
func fastmcp(do string) func(place, *server) ([]string, any) {
	return func(at place, s *server) ([]string, any) {
		argv := []string{peer("bin/python-fastmcp/bin/fastmcp"), do, "--json"}
		switch {
		case at.url == "":
			argv = append(argv, "--command", strings.Join(at.argv, " "))
		case at.sse:
			argv = append(argv, "--transport", "sse", "--server-spec", at.url) // it adds /sse to a URL that does not end with that
		default:
			argv = append(argv, "--transport", "http", "--server-spec", at.url)
		}
		if do == "call" {
			argv = append(argv, "--target", s.tool, "--input-json", s.arguments)
		}
		return argv, nil
	}
}

func rmcp(tour, era string) func(place, *server) ([]string, any) {
	return func(at place, s *server) ([]string, any) {
		in := map[string]any{"era": era, "tool": s.tool, "arguments": json.RawMessage(s.arguments)}
		if in["url"] = at.url; at.url == "" {
			delete(in, "url")
			in["argv"] = at.argv
		}
		return []string{tour}, in
	}
}
