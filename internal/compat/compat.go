package compat

import (
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// What becomes of a feature on its way to clients of the other era.
const (
	Refused = "refused" // they don't get it
	Changes = "changes" // they get it in another form
	Crosses = "crosses" // they get what clients of the server's era get
)

// A Feature says what becomes of one feature of a server, and why.
type Feature struct {
	Feature string   `json:"feature"`
	Items   []string `json:"items,omitempty"` // the tools, the extensions it is about
	Outcome string   `json:"outcome"`
	Why     string   `json:"why"`
	Rule    string   `json:"rule"` // of docs/rules.md
}

// A row of a table is a feature, and the servers it is about.
type row struct {
	feature string
	outcome string
	rule    string
	when    func(*Server) ([]string, bool)
	why     string
}

// A Server is one that was probed.
type Server struct {
	mcp.Verdict
	HTTP    bool     // a request is an HTTP request with its own response
	Command bool     // it is a process of ours
	Hidden  []string // extensions and experimental capabilities that the configuration hides
}

// Features returns what becomes of a server's features: first what does not cross.
func (s *Server) Features() []Feature {
	table := toModern
	if s.Era == spec.Modern {
		table = toLegacy
	}
	out := []Feature{}
	for _, p := range table {
		if items, ok := p.when(s); ok {
			out = append(out, Feature{p.feature, items, p.outcome, p.why, p.rule})
		}
	}
	rank := []string{Refused, Changes, Crosses}
	slices.SortStableFunc(out, func(a, b Feature) int {
		return slices.Index(rank, a.Outcome) - slices.Index(rank, b.Outcome)
	})
	return out
}

// capability returns what the server declared at a path, or nil.
func (s *Server) capability(path string) []byte {
	v := []byte(s.Description.Capabilities)
	for name := range strings.SplitSeq(path, ".") {
		if v = wire.Get(v, name); v == nil || wire.IsNull(v) {
			return nil
		}
	}
	return v
}

// declares reports whether a capability is there, and not false.
func (s *Server) declares(path string) bool {
	v := s.capability(path)
	return v != nil && string(v) != "false"
}

// What the rows of the tables ask. Each returns a question.

func always(*Server) ([]string, bool) { return nil, true }

// has asks whether all capabilities are declared.
func has(paths ...string) func(*Server) ([]string, bool) {
	return func(s *Server) ([]string, bool) {
		for _, path := range paths {
			if !s.declares(path) {
				return nil, false
			}
		}
		return nil, true
	}
}

// hasnt asks whether a group is declared without a member of it.
func hasnt(group, member string) func(*Server) ([]string, bool) {
	return func(s *Server) ([]string, bool) { return nil, s.declares(group) && !s.declares(group+"."+member) }
}

// lacks asks whether a capability is not declared.
func lacks(path string) func(*Server) ([]string, bool) {
	return func(s *Server) ([]string, bool) { return nil, !s.declares(path) }
}

// heard asks whether a capability is declared, and there is a way for what the
// server sends unasked; unheard, whether there is none.
func heard(path string) func(*Server) ([]string, bool) {
	return func(s *Server) ([]string, bool) { return nil, s.declares(path) && s.Unasked }
}

func unheard(path string) func(*Server) ([]string, bool) {
	return func(s *Server) ([]string, bool) { return nil, s.declares(path) && !s.Unasked }
}

// tools asks which tools are so.
func tools(so func(tool []byte) bool) func(*Server) ([]string, bool) {
	return func(s *Server) (names []string, _ bool) {
		for _, l := range s.Lists {
			for _, tool := range l.Items {
				if l.Method == spec.MethodToolsList && so(tool) {
					name, _ := wire.GetString(tool, "name")
					names = append(names, name)
				}
			}
		}
		return names, len(names) > 0
	}
}

// members asks for the names in a set of extensions, but those that are hidden: the one
// that does not cross, or all others.
func members(set string, tasks bool) func(*Server) ([]string, bool) {
	return func(s *Server) (names []string, _ bool) {
		for k := range wire.Members(s.capability(set)) {
			if name := k.String(); (name == spec.ExtensionTasks) == tasks && !slices.Contains(s.Hidden, name) {
				names = append(names, name)
			}
		}
		return names, len(names) > 0
	}
}

// both asks two questions; the items are the second's.
func both(a, b func(*Server) ([]string, bool)) func(*Server) ([]string, bool) {
	return func(s *Server) ([]string, bool) {
		if _, ok := a(s); !ok {
			return nil, false
		}
		return b(s)
	}
}

func overHTTP(s *Server) ([]string, bool)    { return nil, s.HTTP }
func notOverHTTP(s *Server) ([]string, bool) { return nil, !s.HTTP }

// overStdio asks whether the server is a command; overConn, whether it is reached over
// another connection that all requests share: a WebSocket, or HTTP+SSE.
func overStdio(s *Server) ([]string, bool) { return nil, s.Command }
func overConn(s *Server) ([]string, bool)  { return nil, !s.HTTP && !s.Command }

// instructs asks whether the server says how to use it.
func instructs(s *Server) ([]string, bool) { return nil, s.Description.Instructions != nil }

// What tools are asked.

// runsAsTask returns a question: does the tool have this taskSupport?
func runsAsTask(support string) func(tool []byte) bool {
	return func(tool []byte) bool {
		v, _ := wire.GetString(wire.Get(tool, "execution"), "taskSupport")
		return v == support
	}
}

// noInput asks whether a tool does not say that its arguments are an object.
func noInput(tool []byte) bool {
	schema := wire.Get(tool, "inputSchema")
	return schema == nil || wire.IsNull(schema) || wire.IsObject(schema) && wire.Get(schema, "type") == nil
}

// otherInput asks whether a tool says that its arguments are something else, so that
// clients of 2026-07-28 refuse it.
func otherInput(tool []byte) bool {
	typ := wire.Get(wire.Get(tool, "inputSchema"), "type")
	return !noInput(tool) && wire.Unquote(typ) != "object"
}

// neverObject asks whether a tool says that its arguments can't be an object, so that
// there is no form of it for older clients.
func neverObject(tool []byte) bool {
	typ := wire.Get(wire.Get(tool, "inputSchema"), "type")
	for t := range wire.Elements(typ) {
		if wire.Unquote(t) == "object" {
			return false
		}
	}
	return otherInput(tool)
}

// wrapsOutput asks whether older clients get the tool's results wrapped.
func wrapsOutput(tool []byte) bool {
	schema := wire.Get(tool, "outputSchema")
	isSchema := wire.IsObject(schema) || string(schema) == "true" || string(schema) == "false"
	return isSchema && wire.Unquote(wire.Get(schema, "type")) != "object"
}

func hasOutput(tool []byte) bool { return wire.IsObject(wire.Get(tool, "outputSchema")) }

// mirrors asks whether headers repeat parameters of the tool, mismirrors whether
// they can't, though it says so.
func mirrors(tool []byte) bool { return !mismirrors(tool) && mirrorsIn(wire.Get(tool, "inputSchema")) }

func mismirrors(tool []byte) bool {
	return protocol.AnnotationFault(wire.Get(tool, "inputSchema")) != ""
}

func mirrorsIn(schema []byte) bool {
	for _, p := range wire.Members(wire.Get(schema, "properties")) {
		if wire.Get(p, "x-mcp-header") != nil || mirrorsIn(p) {
			return true
		}
	}
	return false
}
