package report

import (
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// What happens to a feature for clients of the other era.
const (
	Refused    = "refused"     // clients don't get it
	Changes    = "changes"     // clients get it in another form
	Crosses    = "crosses"     // clients get the same as those of the server's era
	NotOffered = "not offered" // nobody gets it: the server has it not
)

const whyUndeclared = "the server does not declare it"

// A Feature says what happens to one feature of a server, and why.
type Feature struct {
	Feature string   `json:"feature"`
	Items   []string `json:"items,omitempty"` // the tools, the extensions it is about
	Outcome string   `json:"outcome"`
	Why     string   `json:"why"`
	Rule    string   `json:"rule"` // of docs/rules.md
	// IfUsed says that the server does not declare whether it does such a thing.
	IfUsed bool `json:"if_used,omitempty"`
}

// A row of a table is a feature, and the condition under which a server has it.
type row struct {
	feature string
	outcome string
	rule    string
	when    func(*probed) ([]string, bool)
	why     string
}

// A probed is a server as it was probed.
type probed struct {
	mcp.Verdict
	HTTP     bool // a request is an HTTP request with its own response
	Command  bool // it is a command
	Settings settings.Server
}

// features returns what happens to the server's features, beginning with those that are
// refused.
func (s *probed) features() []Feature {
	declared, tasks, ifUsed := toModern, legacyTasks, toModernIfUsed
	if s.Era == spec.Modern {
		declared, tasks, ifUsed = toLegacy, modernTasks, toLegacyIfUsed
	}
	out := slices.Concat(s.rows(declared, false), s.rows(tasks, false), s.rows(ifUsed, true))
	rank := []string{Refused, Changes, Crosses, NotOffered}
	slices.SortStableFunc(out, func(a, b Feature) int {
		return slices.Index(rank, a.Outcome) - slices.Index(rank, b.Outcome)
	})
	return out
}

// rows returns what a table has of the server.
func (s *probed) rows(table []row, ifUsed bool) []Feature {
	out := []Feature{}
	for _, p := range table {
		if items, ok := p.when(s); ok {
			out = append(out, Feature{p.feature, items, p.outcome, p.why, p.rule, ifUsed})
		}
	}
	return out
}

// capability returns the declared value at a path, or nil.
func (s *probed) capability(path string) []byte {
	v := []byte(s.Description.Capabilities)
	for name := range strings.SplitSeq(path, ".") {
		if v = wire.Get(v, name); v == nil || wire.IsNull(v) {
			return nil
		}
	}
	return v
}

// declares reports whether a capability is declared, and not false.
func (s *probed) declares(path string) bool {
	v := s.capability(path)
	return v != nil && string(v) != "false"
}

// The conditions in the tables. Each function returns one.

func always(*probed) ([]string, bool) { return nil, true }

// has holds if all capabilities are declared.
func has(paths ...string) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) {
		for _, path := range paths {
			if !s.declares(path) {
				return nil, false
			}
		}
		return nil, true
	}
}

// hasnt holds if a group is declared without a member.
func hasnt(group, member string) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) { return nil, s.declares(group) && !s.declares(group+"."+member) }
}

// lacks holds if a capability is not declared.
func lacks(path string) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) { return nil, !s.declares(path) }
}

// heard holds if a capability is declared, and the server can send notifications; unheard,
// if it can't.
func heard(path string) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) { return nil, s.declares(path) && s.Unasked }
}

func unheard(path string) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) { return nil, s.declares(path) && !s.Unasked }
}

// tools holds if there are tools for which so is true.
func tools(so func(tool []byte) bool) func(*probed) ([]string, bool) {
	return func(s *probed) (names []string, _ bool) {
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

// members holds if a set of extensions has names that are not hidden: that of the tasks
// extension, or others.
func members(set string, tasks bool) func(*probed) ([]string, bool) {
	return func(s *probed) (names []string, _ bool) {
		for k := range wire.Members(s.capability(set)) {
			if name := k.String(); (name == spec.ExtensionTasks) == tasks && !slices.Contains(s.Settings.Hidden(), name) {
				names = append(names, name)
			}
		}
		return names, len(names) > 0
	}
}

// both holds if two conditions hold; the items are those of the second.
func both(a, b func(*probed) ([]string, bool)) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) {
		if _, ok := a(s); !ok {
			return nil, false
		}
		return b(s)
	}
}

func overHTTP(s *probed) ([]string, bool)    { return nil, s.HTTP }
func notOverHTTP(s *probed) ([]string, bool) { return nil, !s.HTTP }

// overStdio holds if the server is a command; overConn, if it is reached over another
// shared connection, a WebSocket or HTTP+SSE.
func overStdio(s *probed) ([]string, bool) { return nil, s.Command }
func overConn(s *probed) ([]string, bool)  { return nil, !s.HTTP && !s.Command }

// instructs holds if the server has instructions.
func instructs(s *probed) ([]string, bool) { return nil, s.Description.Instructions != nil }

// The conditions on tools.

// runsAsTask holds if the tool has this taskSupport.
func runsAsTask(support string) func(tool []byte) bool {
	return func(tool []byte) bool {
		v, _ := wire.GetString(wire.Get(tool, "execution"), "taskSupport")
		return v == support
	}
}

// noInput holds if the tool does not say that its arguments are an object.
func noInput(tool []byte) bool {
	schema := wire.Get(tool, "inputSchema")
	return schema == nil || wire.IsNull(schema) || wire.IsObject(schema) && wire.Get(schema, "type") == nil
}

// otherInput holds if the tool says that its arguments are not an object, so that clients
// of 2026-07-28 refuse it.
func otherInput(tool []byte) bool {
	typ := wire.Get(wire.Get(tool, "inputSchema"), "type")
	return !noInput(tool) && wire.Unquote(typ) != "object"
}

// neverObject holds if the tool says that its arguments can't be an object, so that there
// is no form for older clients.
func neverObject(tool []byte) bool {
	typ := wire.Get(wire.Get(tool, "inputSchema"), "type")
	for t := range wire.Elements(typ) {
		if wire.Unquote(t) == "object" {
			return false
		}
	}
	return otherInput(tool)
}

// wrapsOutput holds if older clients get the tool's results wrapped.
func wrapsOutput(tool []byte) bool {
	schema := wire.Get(tool, "outputSchema")
	isSchema := wire.IsObject(schema) || string(schema) == "true" || string(schema) == "false"
	return isSchema && wire.Unquote(wire.Get(schema, "type")) != "object"
}

func hasOutput(tool []byte) bool { return wire.IsObject(wire.Get(tool, "outputSchema")) }

// mirrors holds if parameters of the tool are mirrored in headers; mismirrors, if they
// can't be, though the tool says so.
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
