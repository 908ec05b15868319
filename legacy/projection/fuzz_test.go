package projection

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

var fuzzedMethods = []string{
	"tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/read",
	"completion/complete", "acme/other",
}

// For any result of a server, the client gets valid JSON without modern members, and
// converting it again does not change it.
func FuzzAppendResult(f *testing.F) {
	for i, in := range []string{
		`{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"a":true}},"outputSchema":{"type":["array"],"$ref":"#/$defs/a","$defs":{"a":false}}}],"ttlMs":1,"cacheScope":"x","resultType":"complete"}`,
		`{"content":[{"type":"audio"},{"type":"resource_link","uri":"a"},null,"x",7],"structuredContent":[1,"\n\"",{"a":null}],"_meta":{"io.modelcontextprotocol/serverInfo":{}}}`,
		`{"prompts":[{"name":"a","arguments":null}],"nextCursor":null}`,
		`{"messages":[{"role":"user","content":{"type":"\u0061udio"}},{"content":[]},3],"description":null}`,
		`{"resources":{},"\u0072esultType":"complete"}`,
		`{"resourceTemplates":null,"_meta":[]}`,
		`{"contents":[{"text":null}],"_meta":null}`,
		`{"completion":{"values":[1,2],"hasMore":null}}`,
		`{"resultType":"complete","ttlMs":5,"content":1}`,
		`{"content":{},"content":[],"structuredContent":1,"structuredContent":{}}`,
	} {
		f.Add(uint8(i), []byte(in))
	}
	f.Fuzz(func(t *testing.T, pick uint8, body []byte) {
		if wire.Check(body, 0) != nil || wire.CheckUnique(body) != nil {
			return // neither reaches a front
		}
		method, rev := fuzzedMethods[int(pick)%len(fuzzedMethods)], spec.Revisions(spec.Legacy)[pick>>6]
		tools := NewTools()
		once, _, err := AppendResult(nil, rev, method, []byte(`{"name":"x"}`), body, tools)
		if err != nil {
			return
		}
		if err := wire.Check(once, 2*wire.DefaultMaxDepth); err != nil || !wire.IsObject(once) {
			t.Fatalf("AppendResult(%s, %s, %s) = %s: %v", rev, method, body, once, err)
		}
		if left := modernMembers(method, once); left != nil {
			t.Fatalf("AppendResult(%s, %s, %s) = %s with %q", rev, method, body, once, left)
		}
		twice, _, err := AppendResult(nil, rev, method, []byte(`{"name":"other"}`), once, nil)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("projected again, %s became %s, %v", once, twice, err)
		}
	})
}

// For any input request of a server, the client gets valid JSON, or the request is
// refused.
func FuzzQuestion(f *testing.F) {
	for i, in := range []string{
		form(`{"type":"string","oneOf":[{"const":"a","title":null},{},7],"default":1}`),
		`{"mode":"url","url":null}`,
		`{"messages":[{"content":[{"type":"tool_result","structuredContent":null}]},{"content":null},5,{"content":{"type":"audio"}}],"tools":[{"name":"a"}]}`,
		`{"messages":[{"content":[1,{}],"role":"x"},{}],"tools":null}`,
		`{"roots":[{"name":null},4]}`,
	} {
		f.Add(uint8(i), []byte(in))
	}
	methods := []string{spec.MethodElicit, spec.MethodSample, spec.MethodRootsList}
	f.Fuzz(func(t *testing.T, pick uint8, params []byte) {
		if wire.Check(params, 0) != nil || !wire.IsObject(params) {
			return
		}
		rev := spec.Revisions(spec.Legacy)[pick>>6]
		q := mcp.InputRequest{Method: methods[int(pick)%len(methods)], Params: params}
		if asked, err := InputRequest(rev, params, q); err == nil && wire.Check(asked.Params, 2*wire.DefaultMaxDepth) != nil {
			t.Fatalf("Question(%s, %s, %s) = %s", rev, q.Method, params, asked.Params)
		}
		if a := InputResponse(rev, q, mcp.InputResponse{Result: params}); wire.Check(a.Result, 0) != nil {
			t.Fatalf("Answer(%s, %s, %s) = %s", rev, q.Method, params, a.Result)
		}
		for _, caps := range [][]byte{AppendServerCapabilities(nil, rev, params), AppendClientCapabilities(nil, rev, params)} {
			if wire.Check(caps, 0) != nil {
				t.Fatalf("capabilities %s became %s", params, caps)
			}
		}
		if n := Notification(rev, mcp.Notification{Params: params}); wire.Check(n.Params, 0) != nil {
			t.Fatalf("Notification(%s) = %s", params, n.Params)
		}
	})
}

// modernMembers returns what a legacy result of method must not have.
func modernMembers(method string, text []byte) (left []string) {
	names := []string{"resultType"}
	if spec.Defined(method) {
		names = append(names, "ttlMs", "cacheScope")
	}
	for _, name := range names {
		if wire.Get(text, name) != nil {
			left = append(left, name)
		}
	}
	for _, name := range []string{spec.MetaServerInfo, spec.MetaSubscriptionID} {
		if wire.Get(wire.Get(text, "_meta"), name) != nil {
			left = append(left, name)
		}
	}
	return left
}
