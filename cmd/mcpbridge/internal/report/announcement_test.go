package report

import (
	"net"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// What serve prints names every endpoint, and where else it can be looked at.
func TestAnnouncement(t *testing.T) {
	const served = "mcpbridge serves MCP clients of every revision at\n  http://127.0.0.1:2526/mcp/a\n  http://127.0.0.1:2526/mcp\n"
	for _, tt := range []struct{ name, admin, opens, want string }{
		{"without an admin address", "", "", ""},
		{"with one", "http://127.0.0.1:2527", "", "See what passes: http://127.0.0.1:2527/\n  in a terminal: mcpbridge tail, mcpbridge top; for monitoring: http://127.0.0.1:2527/metrics, http://127.0.0.1:2527/readyz\n"},
		{"with one that wants a token", "https://127.0.0.1:2527", " (a link opens it)", "See what passes: https://127.0.0.1:2527/ (a link opens it)\n  in a terminal: mcpbridge tail, mcpbridge top; for monitoring: https://127.0.0.1:2527/metrics, https://127.0.0.1:2527/readyz\n"},
		{"with a socket", "unix:/run/admin", "", "and its state on the socket, for mcpbridge top and tail\n  /run/admin\n"},
	} {
		a := Announcement{Endpoints: []Announced{{"a", "http://127.0.0.1:2526/mcp/a"}, {"all", "http://127.0.0.1:2526/mcp"}}, Admin: tt.admin, Opens: tt.opens}
		if got := a.Text(); got != served+tt.want {
			t.Errorf("%s: Text = %s, want %s", tt.name, got, served+tt.want)
		}
	}
}

// A newcomer is given lines that can be typed as they are: of a notebook a note is followed, of
// other servers the list of tools.
func TestTrial(t *testing.T) {
	const at = "http://127.0.0.1:2526/mcp/a"
	for _, tt := range []struct {
		name string
		t    Trial
		want string
	}{
		{"a notebook", Trial{Self: "mcpbridge", URL: at, Builtin: "notebook"},
			"\nIn a second terminal, follow a note:\n  mcpbridge listen " + at + " --resource note://todo\nIn a third, edit it:\n  mcpbridge call " + at + " edit_note name=todo text=x\n"},
		{"another server", Trial{Self: "./mcpbridge", URL: at},
			"\nIn a second terminal, see its tools, or follow them:\n  ./mcpbridge call " + at + "\n  ./mcpbridge listen " + at + " --tools\n"},
		{"where a token is wanted", Trial{Self: "mcpbridge", URL: at, Flags: ` -H "A: $TOKEN"`, Before: "export TOKEN=…"},
			"\nIn a second terminal, see its tools, or follow them:\n  export TOKEN=…\n  mcpbridge call " + at + " -H \"A: $TOKEN\"\n  mcpbridge listen " + at + " --tools -H \"A: $TOKEN\"\n"},
	} {
		if got := tt.t.Text(); got != tt.want {
			t.Errorf("%s: Text = %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Addresses are named as a client on this machine can dial them.
func TestAddresses(t *testing.T) {
	secure := config.TLS{Cert: "cert.pem", Key: "key.pem"}
	for _, tt := range []struct {
		name, addr      string
		c               config.Config
		endpoint, admin string
	}{
		{"one interface", "10.1.2.3:80", config.Config{}, "http://10.1.2.3:80/mcp/a", "http://10.1.2.3:80"},
		{"all interfaces", "0.0.0.0:80", config.Config{}, "http://127.0.0.1:80/mcp/a", "http://127.0.0.1:80"},
		{"all interfaces of IPv6", "[::]:80", config.Config{}, "http://127.0.0.1:80/mcp/a", "http://127.0.0.1:80"},
		{"a port alone", ":80", config.Config{}, "http://127.0.0.1:80/mcp/a", "http://127.0.0.1:80"},
		{"a name", "localhost:80", config.Config{}, "http://localhost:80/mcp/a", "http://localhost:80"},
		{"IPv6", "[::1]:80", config.Config{}, "http://[::1]:80/mcp/a", "http://[::1]:80"},
		{"TLS, where the admin address is for this machine", "127.0.0.1:80", config.Config{TLS: secure, Admin: "127.0.0.1:80"}, "https://127.0.0.1:80/mcp/a", "http://127.0.0.1:80"},
		{"TLS, where both are for others", "0.0.0.0:80", config.Config{TLS: secure, Admin: "0.0.0.0:80"}, "https://127.0.0.1:80/mcp/a", "https://127.0.0.1:80"},
		{"the server that has the short path", "127.0.0.1:80", config.Config{Default: "a"}, "http://127.0.0.1:80/mcp", "http://127.0.0.1:80"},
	} {
		if got := Endpoint(&tt.c, tt.addr, "a"); got != tt.endpoint {
			t.Errorf("%s: Endpoint(%s) = %s, want %s", tt.name, tt.addr, got, tt.endpoint)
		}
		if got := AdminURL(&tt.c, tt.addr); got != tt.admin {
			t.Errorf("%s: AdminURL(%s) = %s, want %s", tt.name, tt.addr, got, tt.admin)
		}
	}
	if got := Admin(&config.Config{Admin: "unix:/run/admin"}, &net.UnixAddr{Name: "/run/admin"}); got != "unix:/run/admin" {
		t.Errorf("Admin of a socket = %s", got)
	}
}

// A server behind the address is shown to each host as that host has servers in its file.
func TestSnippets(t *testing.T) {
	const url = "https://mcp.example.com/mcp/docs"
	seen := make(map[string]string)
	for _, proof := range []bool{false, true} {
		for _, s := range snippets("docs", url, proof) {
			if !strings.Contains(s.Text, url) || strings.Contains(s.Text, "Bearer") != proof || len(s.Files) == 0 || s.Title == "" {
				t.Errorf("proof %v: %s (%s) has in %q\n%s\nwant the URL, and a token where it is proved", proof, s.Host, s.Title, s.Files, s.Text)
			}
			for _, file := range s.Files {
				if strings.HasPrefix(file, "./") || strings.Contains(file, "//") {
					t.Errorf("%s: the file is %s, want the path as people write it", s.Host, file)
				}
			}
			seen[s.Host] = s.Text
		}
	}
	if want := "[mcp_servers.docs]\nurl = \"" + url + "\"\n"; !strings.HasPrefix(seen["codex"], want) || seen["cursor"] == "" {
		t.Errorf("codex has\n%s\nwant\n%s", seen["codex"], want)
	}
}
