package argv

import (
	"strings"
	"testing"
)

// A command is called after what it runs, not after what runs it.
func TestCommandNames(t *testing.T) {
	for in, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-filesystem /notes":                            "server-filesystem",
		"npx -y @modelcontextprotocol/server-everything@latest":                            "server-everything",
		"npx mcp-remote https://h/mcp":                                                     "mcp-remote",
		"npx -p @scope/tools some-server --stdio":                                          "some-server",
		"npx --package=@scope/tools -- some-server":                                        "some-server",
		"npx -y github:ada/mcp-thing":                                                      "mcp-thing",
		"npx.cmd -y figma-mcp@1.2.3":                                                       "figma-mcp",
		"cmd /c npx -y figma-mcp":                                                          "figma-mcp",
		"env TOKEN=x npx -y figma-mcp":                                                     "figma-mcp",
		"uvx mcp-server-git":                                                               "mcp-server-git",
		"uvx mcp-server-git==0.6.2 --repository .":                                         "mcp-server-git",
		"uvx mcp-server-git[cli]@latest":                                                   "mcp-server-git",
		"uvx --from git+https://github.com/ada/kit.git kit-mcp":                            "kit-mcp",
		"uvx git+https://github.com/ada/kit.git":                                           "kit",
		"uv run --directory /src/kit kit-mcp":                                              "kit-mcp",
		"uv --directory /src/weather run server.py":                                        "server",
		"uv run python -m kit.server":                                                      "kit",
		"uv tool run mcp-server-time":                                                      "mcp-server-time",
		"pipx run mcp-server-time":                                                         "mcp-server-time",
		"docker run -i --rm -e TOKEN mcp/postgres:latest":                                  "postgres",
		"docker run -i --name pg -v a:b --rm ghcr.io/github/github-mcp-server@sha256:0123": "github-mcp-server",
		"podman run --rm -i localhost:5000/x/notes:1 serve":                                "notes",
		"python -m pkg.mod":                                                                "pkg.mod",
		"python3.12 -u -m mcp_server_git":                                                  "mcp_server_git",
		"python -u /home/ada/weather/server.py":                                            "weather",
		"python tools/notes_mcp.py":                                                        "notes_mcp",
		"/opt/venv/bin/python -m my_mcp_server":                                            "my_mcp_server",
		"node /path/to/server-x/dist/index.js":                                             "server-x",
		"node --env-file .env build/index.mjs":                                             "index",
		"node --inspect server-y/src/main.js":                                              "server-y",
		"bun run /srv/notes/src/index.ts":                                                  "notes",
		"bun x @ada/tool@2":                                                                "tool",
		"bunx @ada/tool":                                                                   "tool",
		"pnpm dlx @ada/tool":                                                               "tool",
		"pnpm --silent dlx @ada/tool":                                                      "tool",
		"npm exec -- @ada/tool --stdio":                                                    "tool",
		"yarn dlx -q @ada/tool":                                                            "tool",
		"deno run -A npm:@ada/tool@1 --stdio":                                              "tool",
		"deno run --allow-net=h jsr:@ada/kit":                                              "kit",
		"deno run -A /srv/kit/main.ts":                                                     "kit",
		"java -jar /opt/jira-mcp.jar":                                                      "jira-mcp",
		"go run ./cmd/notes-mcp":                                                           "notes-mcp",
		`C:\Tools\notes\notes-mcp.exe`:                                                     "notes-mcp",
		"/usr/bin/npx":                                                                     "npx",
		"server.py":                                                                        "server",
		"./.x":                                                                             "x",
		"/usr/local/bin/github-mcp-server stdio":                                           "github-mcp-server",
		"docker compose up":                                                                "docker",
	} {
		if got := Name(strings.Fields(in)); got != want {
			t.Errorf("Name(%q) = %q, want %q", in, got, want)
		}
	}
}
