package notebook

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}`

// connectModern connects as a modern client does.
func connectModern(t *testing.T, nb *Notebook) *client {
	ours, theirs := transport.NewPipe()
	c := &client{t: t, conn: ours, ended: make(chan error, 1)}
	go func() { c.ended <- nb.ServeModern(context.Background(), theirs) }() // ends with the conn
	return c
}

// enveloped returns params, which are empty or end with a comma, followed by an envelope.
func enveloped(params string) string { return "{" + params + envelope + "}" }

const infoMeta = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"notebook","title":"Notebook","version":"dev"}}`

func TestModernResults(t *testing.T) {
	c := connectModern(t, New(Options{}))
	want(t, "discover", c.call("server/discover", enveloped("")),
		`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,"listChanged":true},"logging":{},"completions":{}},"instructions":"`+instructions+`","resultType":"complete",`+infoMeta+`,"ttlMs":0,"cacheScope":"private"}`)
	want(t, "edit", c.call("tools/call", enveloped(`"name":"edit_note","arguments":{"name":"todo","text":"x"},`)),
		`{"content":[{"type":"text","text":"saved"}],"resultType":"complete",`+infoMeta+`}`)
	want(t, "read", c.call("resources/read", enveloped(`"uri":"note://todo",`)),
		`{"contents":[{"uri":"note://todo","mimeType":"text/plain","text":"x"}],"resultType":"complete",`+infoMeta+`,"ttlMs":0,"cacheScope":"private"}`)
	if failure := c.wantCode("resources/read", enveloped(`"uri":"note://nope",`), -32602); !strings.Contains(failure, `"data":{"uri":"note://nope"}`) {
		t.Errorf("error = %s, want data.uri", failure)
	}
	if err := c.close(); err != nil {
		t.Errorf("ServeModern = %v, want nil", err)
	}
}

func TestModernStrictness(t *testing.T) {
	c := connectModern(t, New(Options{}))
	defer c.close()
	if failure := c.wantCode("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`, -32022); !strings.HasSuffix(failure, `"data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}`) {
		t.Errorf("initialize = %s", failure)
	}
	c.wantCode("tools/list", `{}`, -32602)
	c.wantCode("tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, -32602)
	c.wantCode("tools/list", strings.ReplaceAll(enveloped(""), "2026-07-28", "2027-01-01"), -32022)
	for _, method := range []string{"ping", "resources/subscribe", "logging/setLevel", "nonsense"} {
		c.wantCode(method, enveloped(""), -32601)
	}
}

func TestModernLogLevelIsTheRequests(t *testing.T) {
	c := connectModern(t, New(Options{}))
	defer c.close()
	edit := `"name":"edit_note","arguments":{"name":"todo","text":"x"},`
	c.call("tools/call", strings.Replace(enveloped(edit), `{"io.`, `{"io.modelcontextprotocol/logLevel":"info","io.`, 1))
	if len(c.heard) != 1 || !strings.Contains(c.heard[0], "saved note todo") {
		t.Errorf("heard %q, want one message", c.heard)
	}
	c.call("tools/call", enveloped(edit))
	if len(c.heard) != 1 {
		t.Errorf("heard %q, want nothing without logLevel", c.heard[1:])
	}
}

func TestModernListen(t *testing.T) {
	nb := New(Options{})
	c, other := connectModern(t, nb), open(t, nb)
	listen := func(id, filter string) {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,%s}}`, id, filter, envelope))
	}
	stamped := func(method, id, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%s","params":{%s"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, method, params, id)
	}
	listen(`1`, `{"resourceSubscriptions":["note://todo","file:///etc"],"promptsListChanged":true}`)
	want(t, "ack of 1", c.read(), stamped("subscriptions/acknowledged", `1`, `"notifications":{"resourceSubscriptions":["note://todo"]},`))
	listen(`"1"`, `{"toolsListChanged":true}`)
	want(t, `ack of "1"`, c.read(), stamped("subscriptions/acknowledged", `"1"`, `"notifications":{"toolsListChanged":true},`))
	listen(`1`, `{}`)
	if got := c.read(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600`) {
		t.Errorf("second listen with id 1 = %s, want it refused", got)
	}

	other.edit("journal", "not followed")
	other.edit("todo", "x")
	want(t, "event of 1", c.read(), stamped("resources/updated", `1`, `"uri":"note://todo",`))
	other.call("tools/call", `{"name":"enable_search","arguments":{}}`)
	want(t, `event of "1"`, c.read(), stamped("tools/list_changed", `"1"`, ``))

	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	c.call("server/discover", enveloped("")) // the cancellation has been read
	other.edit("todo", "y")
	c.call("server/discover", enveloped(""))
	if len(c.heard) != 0 {
		t.Errorf("heard %q after cancelling, want nothing", c.heard)
	}
	if err := c.close(); err != nil {
		t.Errorf("ServeModern = %v, want nil", err)
	}
	if err := other.close(); err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	if len(nb.subscribers) != 0 { // both have returned
		t.Errorf("%d subscribers left, want none", len(nb.subscribers))
	}
}
