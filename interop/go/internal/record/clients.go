package record

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

const modern = `2026-07-28`

var legacy = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// ByClients returns how many requests of clients have each quirk, of those that were served.
func ByClients(all []Exchange) map[string]int {
	found := make(map[string]int)
	sessions := make(map[string]string) // the revision of each
	for i := range all {
		e := &all[i]
		e.opened(sessions)
		if e.Status >= 400 {
			continue
		}
		for _, q := range e.deviations(sessions) {
			found[q]++
		}
	}
	return found
}

// opened notes a session that an answer opens.
func (e *Exchange) opened(sessions map[string]string) {
	id := e.Said.Get("Mcp-Session-Id")
	if id == "" || sessions[id] != "" {
		return
	}
	said, _ := e.answers()
	for _, m := range said {
		var hello struct{ ProtocolVersion string }
		if json.Unmarshal(m.Result, &hello) == nil && hello.ProtocolVersion != "" {
			sessions[id] = hello.ProtocolVersion
		}
	}
}

func (e *Exchange) deviations(sessions map[string]string) (found []string) {
	header := e.Asked.Get("Mcp-Protocol-Version")
	known := header == modern || slices.Contains(legacy, header)
	var m message
	if body := messagesOf(e.Body); len(body) > 0 {
		m = body[0]
	}
	envelope := m.hasEnvelope()
	if own := sessions[e.Asked.Get("Mcp-Session-Id")]; !envelope && own != "" && m.Method != "initialize" && known && header != own {
		found = append(found, "header-revision")
	}
	if m.Method == "initialize" && !envelope && header == modern {
		found = append(found, "initialize-under-modern-header")
	}
	if envelope && slices.Contains(legacy, header) {
		found = append(found, "envelope-under-legacy-header")
	}
	if e.Method == http.MethodPost && e.accepts("application/json") != e.accepts("text/event-stream") {
		switch {
		case !envelope && (m.Method == "initialize" || e.Asked.Get("Mcp-Session-Id") != ""):
			found = append(found, "accept")
		case envelope && m.isRequest():
			found = append(found, "modern-accept")
		}
	}
	return append(found, e.names(&m, envelope)...)
}

// names returns what is wrong with the header of a modern request that names something.
func (e *Exchange) names(m *message, envelope bool) (found []string) {
	if !envelope {
		return nil
	}
	name := e.Asked.Get("Mcp-Name")
	if strings.ContainsFunc(name, func(r rune) bool { return r > 0x7f }) {
		found = append(found, "raw-name")
	}
	if task := m.Method == "tasks/get" || m.Method == "tasks/update" || m.Method == "tasks/cancel"; task && name == "" {
		found = append(found, "task-name-missing")
	}
	return found
}

// accepts reports whether a request takes a form; one without the header takes all.
func (e *Exchange) accepts(form string) bool {
	accept := strings.ToLower(strings.Join(e.Asked.Values("Accept"), ","))
	family, _, _ := strings.Cut(form, "/")
	return accept == "" || strings.Contains(accept, form) || strings.Contains(accept, family+"/*") || strings.Contains(accept, "*/*")
}
