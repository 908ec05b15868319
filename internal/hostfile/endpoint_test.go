package hostfile

import (
	"strings"
	"testing"
)

const endpointURL = "http://127.0.0.1:2526/mcp/docs"

// What each host's file has for an endpoint is read back as a server of that host, at that URL.
func TestEndpointsAreReadBack(t *testing.T) {
	for _, h := range All {
		if h.Name == "codex" {
			continue // TOML
		}
		for _, proof := range []bool{false, true} {
			text := h.Endpoint("docs", endpointURL, proof)
			root, err := Parse([]byte(text))
			if err != nil {
				t.Errorf("%s: %v\n%s", h.Title, err, text)
				continue
			}
			server := valueOf(valueOf(root, h.table), "docs")
			if server == nil || !strings.Contains(text, endpointURL) || strings.Contains(text, ProofPlaceholder) != proof {
				t.Errorf("%s, proof %v:\n%s", h.Title, proof, text)
			}
			if h == claude {
				if v := valueOf(server, "command"); v == nil || v.Value != "mcpbridge" {
					t.Errorf("Claude Desktop has no command:\n%s", text)
				}
				continue
			}
			url := ""
			for _, key := range urlKeys {
				if v := valueOf(server, key); v != nil {
					url = v.Value
				}
			}
			if url != endpointURL {
				t.Errorf("%s has the URL %q:\n%s", h.Title, url, text)
			}
			if guessed := guessByKeys(valueOf(root, "mcpServers")); (h == windsurf || h == gemini) && guessed != h {
				t.Errorf("the entry for %s is taken for one of %s", h.Title, guessed.Title)
			}
		}
	}
}

// The entries are laid out as people write them.
func TestEndpointText(t *testing.T) {
	for _, tt := range []struct {
		of    *Host
		proof bool
		want  string
	}{
		{cursor, false, "{\n  \"mcpServers\": {\n    \"docs\": {\n      \"url\": \"" + endpointURL + "\"\n    }\n  }\n}"},
		{vscode, true, "{\n  \"servers\": {\n    \"docs\": {\n      \"type\": \"http\",\n      \"url\": \"" + endpointURL + "\",\n      \"headers\": {\n        \"Authorization\": \"Bearer YOUR-TOKEN\"\n      }\n    }\n  }\n}"},
		{claude, false, "{\n  \"mcpServers\": {\n    \"docs\": {\n      \"command\": \"mcpbridge\",\n      \"args\": [\"wrap\", \"--name\", \"docs\", \"" + endpointURL + "\"]\n    }\n  }\n}"},
		{&Host{Name: "codex"}, true, "[mcp_servers.docs]\nurl = \"" + endpointURL + "\"\nhttp_headers = { Authorization = \"Bearer YOUR-TOKEN\" }"},
	} {
		if got := tt.of.Endpoint("docs", endpointURL, tt.proof); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.of.Name, got, tt.want)
		}
	}
}
