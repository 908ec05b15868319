package protocol

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ReadFilter reads the filter of a listen request. False and empty members are like missing
// ones, and repeated URIs are merged.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Notification Filter.
func ReadFilter(text []byte) (mcp.Filter, error) {
	var f mcp.Filter
	if !wire.IsObject(text) {
		return f, mcp.Refuse(spec.CodeInvalidParams, "params.notifications is missing or not an object")
	}
	for k, v := range wire.Members(text) {
		var err error
		switch {
		case k.Is("toolsListChanged"):
			f.Tools, err = readBool(k, v)
		case k.Is("promptsListChanged"):
			f.Prompts, err = readBool(k, v)
		case k.Is("resourcesListChanged"):
			f.Resources, err = readBool(k, v)
		case k.Is("resourceSubscriptions"):
			f.URIs, err = readURIs(v)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func readBool(k wire.Key, v []byte) (bool, error) {
	switch string(v) {
	case "true":
		return true, nil
	case "false", "null":
		return false, nil
	}
	return false, mcp.Refuse(spec.CodeInvalidParams, "notifications.%s is not a boolean", k)
}

func readURIs(v []byte) ([]string, error) {
	if wire.IsNull(v) {
		return nil, nil
	}
	if !wire.IsArray(v) {
		return nil, mcp.Refuse(spec.CodeInvalidParams, "notifications.resourceSubscriptions is not an array")
	}
	var uris []string
	seen := make(map[string]bool)
	for e := range wire.Elements(v) {
		if e[0] != '"' {
			return nil, mcp.Refuse(spec.CodeInvalidParams, "notifications.resourceSubscriptions has an element that is not a string")
		}
		if uri := wire.Unquote(e); uri != "" && !seen[uri] {
			seen[uri] = true
			uris = append(uris, uri)
		}
	}
	return uris, nil
}

// AppendFilter appends a filter, without false and empty members.
func AppendFilter(dst []byte, f mcp.Filter) []byte {
	dst = append(dst, '{')
	for _, m := range []struct {
		on   bool
		name string
	}{{f.Tools, "toolsListChanged"}, {f.Prompts, "promptsListChanged"}, {f.Resources, "resourcesListChanged"}} {
		if m.on {
			dst = append(wire.AppendString(dst, m.name), ":true,"...)
		}
	}
	if len(f.URIs) > 0 {
		dst = append(dst, `"resourceSubscriptions":[`...)
		for _, uri := range f.URIs {
			dst = append(wire.AppendString(dst, uri), ',')
		}
		dst = append(wire.CloseArray(dst), ',')
	}
	if dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}')
}

// ListenParams returns the params of a listen request, without _meta.
func ListenParams(want mcp.Filter) []byte {
	return append(AppendFilter([]byte(`{"notifications":`), want), '}')
}

// Acknowledgment returns the filter that an acknowledgment grants, and whether m is one.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Acknowledgment.
func Acknowledgment(m *wire.Message) (mcp.Filter, bool) {
	if m.Method != spec.NotifyAcknowledged {
		return mcp.Filter{}, false
	}
	f, err := ReadFilter(wire.Get(m.Params, "notifications"))
	return f, err == nil
}

// SubscriptionID returns the id of the listen request that a notification names, and whether it
// names one.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Receiving Notifications.
func SubscriptionID(m *wire.Message) (wire.ID, bool) {
	id, err := wire.ParseID(wire.Get(wire.Get(m.Params, "_meta"), spec.MetaSubscriptionID))
	return id, err == nil
}
