package front

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// TestM2L16QuestionsHaveParams proves that a question goes to the client with
// the params it came with, and with empty ones if it had none.
func TestM2L16QuestionsHaveParams(t *testing.T) {
	open := []*pendingInput{
		{key: "q1", request: mcp.InputRequest{Method: spec.MethodRootsList}},
		{key: "q2", request: mcp.InputRequest{Method: spec.MethodElicit, Params: []byte(`{"message":"m"}`)}},
	}
	got := string(appendInputRequired(nil, wire.NumberID(7), open, "state", nil))
	const want = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{` +
		`"q1":{"method":"roots/list","params":{}},"q2":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"state"}}`
	if got != want {
		t.Errorf("appendInputRequired = %s, want %s", got, want)
	}
}

// The result of a call to a group names the server that asks.
func TestG15ResultsNameTheServerThatAsks(t *testing.T) {
	open := []*pendingInput{{key: "q1", request: mcp.InputRequest{Method: spec.MethodRootsList, Server: "files"}}}
	const head = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{"q1":{"method":"roots/list","params":{}}},"requestState":"state","_meta":{`
	for info, want := range map[string]string{"": `"dev.mcpbridge/server":"files"}}}`, `{"name":"all"}`: `"io.modelcontextprotocol/serverInfo":{"name":"all"},"dev.mcpbridge/server":"files"}}}`} {
		var known []byte
		if info != "" {
			known = []byte(info)
		}
		if got := string(appendInputRequired(nil, wire.NumberID(7), open, "state", known)); got != head+want {
			t.Errorf("appendInputRequired = %s, want %s", got, head+want)
		}
	}
}

// Of a group a call parks unless its member is modern, and a retry if the state is of a call that
// is parked here.
func TestG12WhatParksOfAGroup(t *testing.T) {
	s := moderntest.NewScript()
	eras := map[string]spec.Era{"old": spec.Legacy, "new": spec.Modern}
	f := frontOf(t, s, func(o *Options) {
		o.Group, o.Upstream = true, func() spec.Era { return spec.Unknown }
		o.MemberEra = func(req *mcp.Request) spec.Era { return eras[req.Subject()] }
	})
	parked := f.parked.front.opts.Sealer.Seal(requeststate.State{})
	for _, tt := range []struct {
		capabilities, params string
		want                 bool
	}{
		{`{"elicitation":{}}`, `{"name":"old"}`, true}, {`{"elicitation":{}}`, `{"name":"new"}`, false}, {`{"elicitation":{}}`, `{"name":"other"}`, true}, {`{}`, `{"name":"old"}`, false},
		{`{}`, `{"name":"new","requestState":"` + parked + `"}`, true}, {`{}`, `{"name":"old","requestState":"old:s~tag"}`, false},
		{`{}`, `{"name":"old","requestState":"` + f.opts.Sealer.Bind(parked, "x") + `"}`, false}, {`{}`, `{"name":"old","requestState":7}`, false},
	} {
		req := &mcp.Request{Method: spec.MethodToolsCall, Era: spec.Modern, Capabilities: []byte(tt.capabilities), Params: []byte(tt.params)}
		if got := f.mayPark(t.Context(), req); got != tt.want {
			t.Errorf("mayPark(%s of %s) = %v", tt.params, tt.capabilities, got)
		}
	}
}
