package legacytest

import (
	"fmt"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A MuteServer has tools and resources that change, and never says so.
type MuteServer struct {
	Tools []string          // at least one
	Texts map[string]string // of resources, by URI

	mu    sync.Mutex // guards all fields
	asked map[string]int
}

// Play has a play the server.
func (m *MuteServer) Play(a *Server) {
	a.Capabilities = `{"tools":{},"resources":{}}`
	a.On = map[string]func(wire.Message) string{"tools/list": m.list, "resources/read": m.read}
}

// list has one tool a page.
func (m *MuteServer) list(msg wire.Message) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.countLocked("tools/list")
	at := 0
	if cursor, ok := wire.GetString(msg.Params, "cursor"); ok {
		fmt.Sscan(cursor, &at)
	}
	if at == len(m.Tools)-1 {
		return fmt.Sprintf(`{"_meta":{"n":%d},"tools":[{"name":%q}]}`, m.asked["tools/list"], m.Tools[at])
	}
	return fmt.Sprintf(`{"tools":[{"name":%q}],"nextCursor":"%d"}`, m.Tools[at], at+1)
}

func (m *MuteServer) read(msg wire.Message) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.countLocked("resources/read")
	uri, _ := wire.GetString(msg.Params, "uri")
	if text, ok := m.Texts[uri]; ok {
		return fmt.Sprintf(`{"contents":[{"uri":%q,"text":%q}]}`, uri, text)
	}
	return `{"code":-32002,"message":"no such resource"}`
}

func (m *MuteServer) countLocked(method string) {
	if m.asked == nil {
		m.asked = make(map[string]int)
	}
	m.asked[method]++
}

// Set runs what changes the tools or resources.
func (m *MuteServer) Set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// Count returns how many requests of a method came.
func (m *MuteServer) Count(method string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[method]
}
