package hostfile

import (
	"encoding/json"
	"strconv"
)

// ProofPlaceholder stands in an Endpoint for the token of a client that has to prove who it is.
const ProofPlaceholder = "YOUR-TOKEN"

// Endpoint returns what the host's file has for a server that is reached at a URL: the whole of a
// file that has no other server. With proof it has a header for the client's token.
func (h *Host) Endpoint(name, url string, proof bool) string {
	if h.Name == "codex" {
		return codexEndpoint(name, url, proof)
	}
	var entry []keyed
	switch h.Name {
	case claude.Name: // its file has commands alone
		args := []any{"wrap", "--name", name, url}
		if proof {
			args = append(args, "--header", "Authorization: Bearer "+ProofPlaceholder)
		}
		entry = []keyed{{"command", "mcpbridge"}, {"args", args}}
	case claudeCode.Name, vscode.Name:
		entry = []keyed{{"type", "http"}, {"url", url}}
	case windsurf.Name:
		entry = []keyed{{"serverUrl", url}}
	case cline.Name:
		entry = []keyed{{"type", "streamableHttp"}, {"url", url}}
	case gemini.Name:
		entry = []keyed{{"httpUrl", url}}
	default:
		entry = []keyed{{"url", url}}
	}
	if proof && h != claude {
		entry = append(entry, keyed{"headers", []keyed{{"Authorization", "Bearer " + ProofPlaceholder}}})
	}
	return string(appendValue(nil, []keyed{{h.table, []keyed{{name, entry}}}}, ""))
}

func codexEndpoint(name, url string, proof bool) string {
	text := "[mcp_servers." + name + "]\nurl = " + strconv.Quote(url)
	if proof {
		text += "\nhttp_headers = { Authorization = " + strconv.Quote("Bearer "+ProofPlaceholder) + " }"
	}
	return text
}

// A keyed is a member of a JSON object: a text, a list of texts, or an object.
type keyed struct {
	name  string
	value any
}

// appendValue appends a value as people write JSON: short lists on one line.
func appendValue(dst []byte, v any, indent string) []byte {
	switch v := v.(type) {
	case []keyed:
		dst = append(dst, '{')
		for i, m := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendText(append(dst, "\n  "+indent...), m.name), ": "...)
			dst = appendValue(dst, m.value, indent+"  ")
		}
		return append(dst, "\n"+indent+"}"...)
	case []any:
		dst = append(dst, '[')
		for i, one := range v {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendValue(dst, one, indent)
		}
		return append(dst, ']')
	case string:
		return appendText(dst, v)
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always encodes
	return append(dst, text...)
}
