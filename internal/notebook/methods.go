package notebook

import (
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A method serves the requests of one name: it takes the params, and returns a result to
// encode or an error.
type method func(s *session, params []byte) (any, *wire.Error)

// methods are those that both eras have.
var methods = map[string]method{
	spec.MethodToolsList:          (*session).listTools,
	spec.MethodToolsCall:          (*session).callTool,
	spec.MethodResourcesList:      (*session).listResources,
	spec.MethodResourcesTemplates: (*session).listTemplates,
	spec.MethodResourcesRead:      (*session).readResource,
	spec.MethodPromptsList:        (*session).listPrompts,
	spec.MethodPromptsGet:         (*session).getPrompt,
	spec.MethodComplete:           (*session).complete,
}

// call calls f, which is nil for an unknown method, and encodes the result.
func (s *session) call(f method, m *wire.Message) ([]byte, *wire.Error) {
	if f == nil {
		return nil, wire.Errorf(spec.CodeMethodNotFound, "unknown method %q", m.Method)
	}
	result, failure := f(s, m.Params)
	if failure != nil {
		return nil, failure
	}
	body, err := json.Marshal(result)
	if err != nil {
		return nil, wire.Errorf(spec.CodeInternal, "encoding the result: %v", err)
	}
	return body, nil
}

var capabilities = json.RawMessage(`{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,"listChanged":true},"logging":{},"completions":{}}`)

const instructions = "A notebook for trying things out. Read and subscribe to note://NAME; edit_note changes a note; enable_search adds a tool."

type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

func (n *Notebook) info() implementation { return implementation{"notebook", "Notebook", n.version} }

type logMessage struct {
	Level  spec.LogLevel `json:"level"`
	Logger string        `json:"logger"`
	Data   string        `json:"data"`
}

// log sends a log message, unless the client's level excludes it.
func (s *session) log(level spec.LogLevel, text string) {
	if s.level.Allows(level) {
		s.notify(spec.NotifyMessage, logMessage{level, "notebook", text})
	}
}

func missing(name string) *wire.Error {
	return wire.Errorf(spec.CodeInvalidParams, "params lack %s, or it has another type", name)
}

// onePage returns list, which has a single page, unless the params have a cursor.
func onePage(params []byte, list any) (any, *wire.Error) {
	if cursor := wire.Get(params, "cursor"); cursor != nil {
		return nil, wire.Errorf(spec.CodeInvalidParams, "unknown cursor %s", cursor)
	}
	return list, nil
}
