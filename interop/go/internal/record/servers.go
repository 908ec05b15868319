package record

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// lists has the list that is required in the result of each method.
var lists = map[string]string{
	"tools/list": "tools", "tools/call": "content", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
	"resources/read": "contents", "prompts/list": "prompts", "prompts/get": "messages",
}

// ByServers returns which quirks servers show, sorted.
func ByServers(all []Exchange) []string {
	found := make(map[string]bool)
	for i := range all {
		all[i].judge(found)
	}
	return slices.Sorted(maps.Keys(found))
}

func (e *Exchange) judge(found map[string]bool) {
	said, unframed := e.answers()
	found["unframed-answer"] = found["unframed-answer"] || unframed
	asked := messagesOf(e.Body)
	// The stream of HTTP+SSE, whose first event is where to post, has the answers.
	if e.Method == http.MethodGet && !bytes.HasPrefix(e.Answer, []byte("event: endpoint")) {
		for _, m := range said {
			found["answer-elsewhere"] = found["answer-elsewhere"] || m.isResponse()
		}
	}
	if len(asked) == 1 {
		e.judgeOne(&asked[0], said, found)
	}
	maps.DeleteFunc(found, func(_ string, is bool) bool { return !is })
}

func (e *Exchange) judgeOne(asked *message, said []message, found map[string]bool) {
	if !asked.isRequest() {
		found["notification-status"] = found["notification-status"] || e.Status/100 == 2 && e.Status != http.StatusAccepted
		return
	}
	name := e.Asked.Get("Mcp-Name")
	encoded := strings.HasPrefix(name, "=?base64?")
	session := e.Asked.Get("Mcp-Session-Id") != ""
	found["lost-session-status"] = found["lost-session-status"] || session && e.Status >= 400 && e.Status != http.StatusNotFound
	var progress float64 = -1
	for _, m := range said {
		switch {
		case m.isResponse():
			// A status of an error answers by itself: its body needs no id.
			null := e.Status < 400 && (m.ID == nil || string(m.ID) == "null")
			found["answer-without-id"] = found["answer-without-id"] || null
			found["encoded-name-refused"] = found["encoded-name-refused"] || encoded && m.Error != nil && m.Error.Code == -32020
			judgeResult(asked.Method, m.Result, found)
		case m.Method == "notifications/progress":
			var p struct{ Progress *float64 }
			bad := json.Unmarshal(m.Params, &p) != nil || p.Progress == nil || *p.Progress <= progress
			found["progress-order"] = found["progress-order"] || bad
			if !bad {
				progress = *p.Progress
			}
		case asked.Method == "subscriptions/listen":
			found["untagged-notice"] = found["untagged-notice"] || m.meta("subscriptionId") == ""
		}
	}
}

func judgeResult(method string, text json.RawMessage, found map[string]bool) {
	var r map[string]json.RawMessage
	if json.Unmarshal(text, &r) != nil {
		return
	}
	if method == "initialize" {
		v := string(r["protocolVersion"])
		found["server-revision"] = found["server-revision"] || v == "" || v == `"`+modern+`"`
		return
	}
	list, ok := lists[method]
	if !ok || string(r["resultType"]) == `"input_required"` || string(r["resultType"]) == `"task"` {
		return
	}
	found["list-missing"] = found["list-missing"] || !bytes.HasPrefix(r[list], []byte("["))
	found["null-members"] = found["null-members"] || hasNull(r, list)
	var items []map[string]json.RawMessage
	_ = json.Unmarshal(r[list], &items) // it may be absent
	for _, item := range items {
		found["null-members"] = found["null-members"] || hasNull(item, "")
		if method == "tools/list" {
			var schema struct{ Type string }
			bad := json.Unmarshal(item["inputSchema"], &schema) != nil || schema.Type != "object"
			found["tool-schema"] = found["tool-schema"] || bad
		}
	}
}

func hasNull(object map[string]json.RawMessage, but string) bool {
	for name, v := range object {
		if name != but && name != "structuredContent" && string(v) == "null" {
			return true
		}
	}
	return false
}
