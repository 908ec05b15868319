package mcp

import (
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Declares reports whether capabilities, an object or nil, have a member called name that
// is not null.
func Declares(capabilities []byte, name string) bool {
	v := wire.Get(capabilities, name)
	return v != nil && !wire.IsNull(v)
}

// ServerCapabilities are the parts of a server's capabilities that the gateway uses.
type ServerCapabilities struct {
	Raw json.RawMessage // as the server sent them; an object

	Lists     Lists // listChanged
	Subscribe bool  // resources.subscribe
	Logging   bool
	TaskCalls bool // tasks.requests.tools.call
}

// ReadServerCapabilities reads the capabilities of a server, an object.
func ReadServerCapabilities(capabilities json.RawMessage) ServerCapabilities {
	is := func(group, member string) bool {
		return string(wire.Get(wire.Get(capabilities, group), member)) == "true"
	}
	return ServerCapabilities{
		Raw:       capabilities,
		Lists:     Lists{is("tools", "listChanged"), is("prompts", "listChanged"), is("resources", "listChanged")},
		Subscribe: is("resources", "subscribe"),
		Logging:   Declares(capabilities, "logging"),
		TaskCalls: Declares(wire.Get(wire.Get(wire.Get(capabilities, "tasks"), "requests"), "tools"), "call"),
	}
}

// Declares reports whether the server declared the capability that method requires. It
// reports false for a method that requires none, such as one of an extension.
func (c *ServerCapabilities) Declares(method string) bool {
	name := spec.Capability(method)
	return name != "" && Declares(c.Raw, name)
}

// MissingCapability returns the client capability that an input request requires and that
// the client did not declare, as a capabilities object. It returns nil if the request may
// be sent. An empty elicitation capability means forms.
//
// Spec: 2026-07-28, client/elicitation, Capabilities; client/sampling, Capabilities.
func MissingCapability(capabilities []byte, method string, params []byte) []byte {
	switch method {
	case spec.MethodElicit:
		group := wire.Get(capabilities, "elicitation")
		mode, _ := wire.GetString(params, "mode")
		switch {
		case mode == "url" && !Declares(group, "url"):
			return []byte(`{"elicitation":{"url":{}}}`)
		case mode != "url" && (!wire.IsObject(group) || Declares(group, "url") && !Declares(group, "form")):
			return []byte(`{"elicitation":{"form":{}}}`)
		}
	case spec.MethodSample:
		group := wire.Get(capabilities, "sampling")
		switch {
		case !wire.IsObject(group):
			return []byte(`{"sampling":{}}`)
		case (Declares(params, "tools") || Declares(params, "toolChoice")) && !Declares(group, "tools"):
			return []byte(`{"sampling":{"tools":{}}}`)
		}
	case spec.MethodRootsList:
		if !Declares(capabilities, "roots") {
			return []byte(`{"roots":{}}`)
		}
	}
	return nil
}
