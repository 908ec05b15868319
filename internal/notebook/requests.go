package notebook

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// none is the result of requests that have nothing to tell.
type none struct{}

// handle serves one request: it returns a result to encode, or an error.
func (s *session) handle(m *wire.Message) (any, *wire.Error) {
	switch m.Method {
	case spec.MethodPing:
		return none{}, nil
	case spec.MethodInitialize:
		return s.initialize(m.Params)
	}
	if s.revision == "" {
		return nil, wire.Errorf(spec.CodeInvalidRequest, "%s before initialize", m.Method)
	}
	switch m.Method {
	case spec.MethodSubscribe:
		return s.subscribe(m.Params)
	case spec.MethodUnsubscribe:
		return s.unsubscribe(m.Params)
	case spec.MethodSetLevel:
		return s.setLevel(m.Params)
	}
	return s.feature(m)
}

// feature serves the requests that both eras have.
func (s *session) feature(m *wire.Message) (any, *wire.Error) {
	switch m.Method {
	case spec.MethodToolsList:
		return s.listTools(m.Params)
	case spec.MethodToolsCall:
		return s.callTool(m.Params)
	case spec.MethodResourcesList:
		return s.listResources(m.Params)
	case spec.MethodResourcesTemplates:
		return s.listTemplates(m.Params)
	case spec.MethodResourcesRead:
		return s.readResource(m.Params)
	case spec.MethodPromptsList:
		return s.listPrompts(m.Params)
	case spec.MethodPromptsGet:
		return s.getPrompt(m.Params)
	case spec.MethodComplete:
		return s.complete(m.Params)
	}
	return nil, wire.Errorf(spec.CodeMethodNotFound, "unknown method %q", m.Method)
}

type initializeResult struct {
	ProtocolVersion spec.Revision  `json:"protocolVersion"`
	Capabilities    capabilities   `json:"capabilities"`
	ServerInfo      implementation `json:"serverInfo"`
	Instructions    string         `json:"instructions"`
}

type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

type capabilities struct {
	Tools       listChanged  `json:"tools"`
	Prompts     none         `json:"prompts"`
	Resources   subscribable `json:"resources"`
	Logging     none         `json:"logging"`
	Completions none         `json:"completions"`
}

type listChanged struct {
	ListChanged bool `json:"listChanged"`
}

type subscribable struct {
	Subscribe   bool `json:"subscribe"`
	ListChanged bool `json:"listChanged"`
}

// initialize settles the revision: the client's if it is a legacy one we know,
// else the newest.
//
// Spec: 2025-11-25, basic/lifecycle, Version Negotiation.
func (s *session) initialize(params []byte) (any, *wire.Error) {
	version, ok := wire.GetString(params, "protocolVersion")
	switch {
	case s.revision != "":
		return nil, wire.Errorf(spec.CodeInvalidRequest, "initialize twice in a session")
	case !ok:
		return nil, missing("protocolVersion")
	case !wire.IsObject(wire.Get(params, "capabilities")):
		return nil, missing("capabilities")
	case !wire.IsObject(wire.Get(params, "clientInfo")):
		return nil, missing("clientInfo")
	}
	s.revision = spec.LatestLegacy
	if slices.Contains(spec.Revisions(spec.Legacy), spec.Revision(version)) {
		s.revision = spec.Revision(version)
	}
	return initializeResult{
		ProtocolVersion: s.revision,
		Capabilities:    offered,
		ServerInfo:      s.nb.info(),
		Instructions:    instructions,
	}, nil
}

var offered = capabilities{
	Tools:     listChanged{true},
	Resources: subscribable{Subscribe: true, ListChanged: true},
}

const instructions = "A notebook for trying things out. Read and subscribe to note://NAME; edit_note changes a note; enable_search adds a tool."

func (n *Notebook) info() implementation { return implementation{"notebook", "Notebook", n.version} }

// setLevel sets how severe a message must be to be sent.
//
// Spec: 2025-11-25, server/utilities/logging, Setting Log Level.
func (s *session) setLevel(params []byte) (any, *wire.Error) {
	name, _ := wire.GetString(params, "level")
	level := spec.LogLevel(name)
	if !level.Valid() {
		return nil, wire.Errorf(spec.CodeInvalidParams, "unknown log level %q", name)
	}
	s.level = level
	return none{}, nil
}

type logMessage struct {
	Level  spec.LogLevel `json:"level"`
	Logger string        `json:"logger"`
	Data   string        `json:"data"`
}

// tell sends a log message, if the client asked for such.
func (s *session) tell(level spec.LogLevel, text string) {
	if s.level.Allows(level) {
		s.notify(spec.NotifyMessage, logMessage{level, "notebook", text})
	}
}

func missing(name string) *wire.Error {
	return wire.Errorf(spec.CodeInvalidParams, "params lack %s, or it has another type", name)
}

// refuseCursor is for lists of a single page: they never gave a cursor.
func refuseCursor(params []byte) *wire.Error {
	if cursor := wire.Get(params, "cursor"); cursor != nil {
		return wire.Errorf(spec.CodeInvalidParams, "unknown cursor %s", cursor)
	}
	return nil
}
