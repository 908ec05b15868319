package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// evil returns a text that tells where it is from, if it runs.
func evil(where string) string {
	return fmt.Sprintf(`<img src=x onerror="window.run='%s'"><script>window.run='%[1]s'</script>`, where)
}

// quoted returns a text as JSON.
func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// startEvil starts a server of 2025-11-25 whose texts are all HTML, and returns its lines of
// configuration, with those of one that refuses to be connected to with such a text.
func startEvil(t testing.TB) string {
	t.Helper()
	one := httptest.NewServer(http.HandlerFunc(serveEvil))
	t.Cleanup(one.Close)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond(w, readCall(r), `"error":{"code":-32603,"message":`+quoted(evil("last error"))+`}`)
	}))
	t.Cleanup(refuses.Close)
	return fmt.Sprintf("  evil: {url: %q}\n  refuses: {url: %q}\n", one.URL, refuses.URL)
}

// A call is what of a request is of interest.
type evilCall struct {
	ID     json.RawMessage
	Method string
	Params struct{ Name string }
}

func readCall(r *http.Request) (c evilCall) {
	_ = json.NewDecoder(r.Body).Decode(&c) // what is no request has no method
	return c
}

func serveEvil(w http.ResponseWriter, r *http.Request) {
	c := readCall(r)
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case c.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case c.Method == "initialize":
		respond(w, c, `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":`+quoted(evil("server"))+`,"version":"1"},"instructions":`+quoted(evil("instructions"))+`}`)
	case c.Method == "tools/list":
		respond(w, c, `"result":{"tools":[`+evilTool("evil", "s")+`,`+evilTool(evil("tool name"), evil("required"))+`]}`)
	case c.Method == "tools/call" && c.Params.Name == "evil":
		w.Header().Set("Content-Type", "text/event-stream")
		event(w, `"method":"notifications/message","params":{"level":"emergency","logger":`+quoted(evil("logger"))+`,"data":`+quoted(evil("log message"))+`}`)
		event(w, fmt.Sprintf(`"id":%s,"result":{"isError":true,"content":[{"type":"text","text":%s}]}`, c.ID, quoted(evil("tool error"))))
	default:
		respond(w, c, `"error":{"code":-32601,"message":`+quoted(evil("error"))+`}`)
	}
}

// evilTool returns a tool, all of whose texts are HTML. If an argument is required that the
// schema does not have, the form has no inputs for it.
func evilTool(name, required string) string {
	text := func(where string) string { return quoted(evil(where)) }
	return `{"name":` + quoted(name) + `,"title":` + text("title") + `,"description":` + text("description") + `,"inputSchema":{"type":"object","required":["s",` + quoted(required) + `],"properties":{` +
		`"s":{"type":"string","title":` + text("property title") + `,"description":` + text("property description") + `,"default":` + text("default") + `},` +
		text("property") + `:{"type":"string"},` +
		`"e":{"type":"string","enum":[` + text("enum") + `,"b"]},"o":{"oneOf":[{"const":` + text("constant") + `,"title":` + text("constant's title") + `}]},` +
		`"__proto__":{"type":"number","default":` + text("number") + `},"b":{"type":"boolean","description":` + text("boolean") + `}}}}`
}

func respond(w http.ResponseWriter, c evilCall, members string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, strings.TrimSpace(string(c.ID)), members)
}

func event(w http.ResponseWriter, members string) {
	fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",%s}\n\n", members)
}
