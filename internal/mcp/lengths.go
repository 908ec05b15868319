package mcp

import (
	"cmp"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Lengths are limits on the parts of a client's message that are stored or repeated in
// other messages, in bytes of JSON.
type Lengths struct {
	ID            int // of a request
	ProgressToken int
	Method        int
	URI           int // of a resource, each
	Filter        int // of a listen stream
	ClientInfo    int
	Capabilities  int // of a client
}

// A TooLongError reports that a part of a message exceeds its limit.
type TooLongError struct {
	What     string // for people
	Limit    *limits.Limit
	Len, Max int
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("%s has %d bytes, over %d; send less, or %s", e.What, e.Len, e.Max, e.Limit.Raise())
}

// Wire returns the error for the client.
func (e *TooLongError) Wire() *wire.Error { return wire.Errorf(spec.CodeInvalidParams, "%v", e) }

// LengthsOf returns those of a set of limits.
func LengthsOf(s limits.Set) Lengths {
	return Lengths{
		ID: s.Int(limits.ID), ProgressToken: s.Int(limits.ProgressToken), Method: s.Int(limits.Method), URI: s.Int(limits.URI),
		Filter: s.Int(limits.Filter), ClientInfo: s.Int(limits.ClientInfo), Capabilities: s.Int(limits.Capabilities),
	}
}

// Check returns an error for the first part of a client's message that is too long, or
// nil. It removes an id that is too long from the message, so that no response repeats
// it.
func (l *Lengths) Check(m *wire.Message) *TooLongError {
	if len(m.Text) <= l.least() {
		return nil // no part can be too long, as in most messages
	}
	if n := m.ID.Len(); n > l.ID {
		m.ID = wire.ID{}
		return &TooLongError{"the id", limits.ID, n, l.ID}
	}
	return cmp.Or(
		over("the method", limits.Method, len(m.Method), l.Method),
		l.checkMeta(m.Meta),
		l.checkParams(m))
}

func (l *Lengths) least() int {
	return min(l.ID, l.ProgressToken, l.Method, l.URI, l.Filter, l.ClientInfo, l.Capabilities)
}

// over returns an error if n exceeds most, or else nil.
func over(what string, limit *limits.Limit, n, most int) *TooLongError {
	if n <= most {
		return nil
	}
	return &TooLongError{what, limit, n, most}
}

func (l *Lengths) checkMeta(meta []byte) *TooLongError {
	for k, v := range wire.Members(meta) {
		var err *TooLongError
		switch {
		case k.Is(spec.MetaProgressToken):
			err = over("the progress token", limits.ProgressToken, len(v), l.ProgressToken)
		case k.Is(spec.MetaClientInfo):
			err = l.checkInfo(v)
		case k.Is(spec.MetaClientCapabilities):
			err = l.checkCapabilities(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Lengths) checkInfo(v []byte) *TooLongError {
	return over("clientInfo", limits.ClientInfo, len(v), l.ClientInfo)
}

func (l *Lengths) checkCapabilities(v []byte) *TooLongError {
	return over("the client's capabilities", limits.Capabilities, len(v), l.Capabilities)
}

// checkParams checks the params of some methods.
func (l *Lengths) checkParams(m *wire.Message) *TooLongError {
	switch m.Method {
	case spec.MethodInitialize:
		return cmp.Or(l.checkInfo(wire.Get(m.Params, "clientInfo")), l.checkCapabilities(wire.Get(m.Params, "capabilities")))
	case spec.MethodResourcesRead, spec.MethodSubscribe, spec.MethodUnsubscribe:
		return l.checkURI(wire.Get(m.Params, "uri"))
	case spec.MethodComplete:
		return l.checkURI(wire.Get(wire.Get(m.Params, "ref"), "uri"))
	case spec.MethodListen:
		return l.checkFilter(wire.Get(m.Params, "notifications"))
	}
	return nil
}

func (l *Lengths) checkURI(v []byte) *TooLongError {
	return over("the URI", limits.URI, len(v)-len(`""`), l.URI)
}

func (l *Lengths) checkFilter(filter []byte) *TooLongError {
	if err := over("the filter", limits.Filter, len(filter), l.Filter); err != nil {
		return err
	}
	for uri := range wire.Elements(wire.Get(filter, "resourceSubscriptions")) {
		if err := l.checkURI(uri); err != nil {
			return err
		}
	}
	return nil
}
