package mcp

import (
	"context"
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

// CanBeAsked reports whether a client with these capabilities can be asked during a call. Roots are
// no such question: any call of the client will do.
func CanBeAsked(capabilities []byte) bool {
	return Declares(capabilities, "elicitation") || Declares(capabilities, "sampling")
}

// LackedCapability returns the error for a request that failed because the client lacks a
// capability for input requests.
//
// Spec: 2026-07-28, basic/index, MissingRequiredClientCapabilityError.
func LackedCapability(need []byte, text string) error {
	data := wire.AppendEdited(nil, nil, wire.Edit{Name: "requiredCapabilities", Value: need})
	e := wire.Errorf(spec.CodeMissingCapability, "the client lacks a capability that the server needs: %s", text)
	e.Data = data
	return &Refusal{Err: e}
}

// MayBeTask is what a tool has that a client which holds tasks of 2025-11-25 may call as one, or not.
//
// Spec: 2025-11-25, basic/utilities/tasks, Tool-Level Negotiation.
var MayBeTask = wire.Edit{Name: "execution", Value: []byte(`{"taskSupport":"optional"}`)}

// DeclaresTasks reports whether a request declares the tasks extension.
func DeclaresTasks(req *Request) bool {
	return req.Era == spec.Modern && Declares(wire.Get(req.Capabilities, "extensions"), spec.ExtensionTasks)
}

// CheckTasks refuses a request about tasks as [MayUseTasks] does with what describe, a [Describer]'s,
// says of the server. It returns the error of describe, too.
func CheckTasks(ctx context.Context, req *Request, server string, describe func(context.Context, *Request) (*Description, error)) error {
	d, err := describe(ctx, req)
	if err != nil {
		return err
	}
	return MayUseTasks(req, d, server)
}

// MayUseTasks returns the refusal of a request about tasks if the description of a server does not
// have the tasks extension, or the request does not declare it.
//
// Spec: tasks extension 2026-07-28, Capability Negotiation.
func MayUseTasks(req *Request, d *Description, server string) error {
	switch {
	case !Declares(wire.Get(d.Capabilities, "extensions"), spec.ExtensionTasks):
		return Refuse(spec.CodeMethodNotFound, "%s: server %q has no tasks for clients of revision %s to hold", req.Method, server, req.Revision)
	case !DeclaresTasks(req):
		return LackedCapability([]byte(`{"extensions":{"`+spec.ExtensionTasks+`":{}}}`), "it has tasks for clients that declare the extension "+spec.ExtensionTasks)
	}
	return nil
}
