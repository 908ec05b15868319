package replicas

import "encoding/json"

// A step is one request of a client, and what has to be heard for it to be over.
type step struct {
	method string
	params string // JSON, in which {cell}, {dir} and {item} are filled in
	hear   string // a resource, or a list, that changes by it
	tells  tally  // what the server tells with it, for whoever wants it
}

// A tally counts what a server tells beside a result.
type tally struct{ progress, messages int }

// tours say what clients do on each server. What a client can't do is an error, which is
// part of the transcript.
var tours = map[string][]step{
	"everything": {
		{method: "tools/list", params: `{}`},
		{method: "prompts/list", params: `{}`},
		{method: "tools/call", params: `{"name":"echo","arguments":{"message":"grüße \"quoted\" 🦉 {cell}"}}`},
		{method: "tools/call", params: `{"name":"get-sum","arguments":{"a":2,"b":40}}`},
		{method: "tools/call", params: `{"name":"get-structured-content","arguments":{"location":"New York"}}`},
		{method: "tools/call", params: `{"name":"trigger-long-running-operation","arguments":{"duration":0.2,"steps":4}}`, tells: tally{progress: 4}},
		{method: "resources/read", params: `{"uri":"demo://resource/static/document/startup.md"}`},
		{method: "prompts/get", params: `{"name":"args-prompt","arguments":{"city":"Austin","state":"Texas"}}`},
		{method: "tools/call", params: `{"name":"gzip-file-as-resource","arguments":{"name":"{cell}.gz","data":"data:text/plain,hello","outputType":"resource"}}`, hear: "resources"},
		{method: "resources/read", params: `{"uri":"demo://resource/session/{cell}.gz"}`},
		{method: "tools/call", params: `{"name":"no such tool","arguments":{}}`},
	},
	"modern": {
		{method: "tools/list", params: `{}`},
		{method: "prompts/list", params: `{}`},
		{method: "tools/call", params: `{"name":"test_x_mcp_header","arguments":{"region":"Zürich 東京","urgent":true}}`},
		{method: "tools/call", params: `{"name":"test_tool_with_progress","arguments":{}}`, tells: tally{progress: 3}},
		{method: "tools/call", params: `{"name":"test_tool_with_logging","arguments":{}}`, tells: tally{messages: 3}},
		{method: "tools/call", params: `{"name":"test_error_handling","arguments":{}}`},
		{method: "tools/call", params: `{"name":"test_elicitation","arguments":{"message":"who are you?"}}`},
		{method: "tools/call", params: `{"name":"test_input_required_result_multi_round","arguments":{}}`},
		{method: "tools/call", params: `{"name":"test_sampling","arguments":{"prompt":"say something"}}`},
		{method: "resources/read", params: `{"uri":"test://static-text"}`},
		{method: "prompts/get", params: `{"name":"test_prompt_with_arguments","arguments":{"arg1":"hello","arg2":"world"}}`},
		{method: "resources/subscribe", params: `{"uri":"{item}"}`},
		{method: "tools/call", params: `{"name":"text","arguments":{"size":100000}}`},
		{method: "tools/call", params: `{"name":"touch","arguments":{"uris":["{item}"]}}`, hear: "{item}"},
		{method: "resources/unsubscribe", params: `{"uri":"{item}"}`},
	},
	"files": {
		{method: "tools/list", params: `{}`},
		{method: "tools/call", params: `{"name":"read_text_file","arguments":{"path":"{dir}/notes.txt","head":1}}`},
		{method: "tools/call", params: `{"name":"write_file","arguments":{"path":"{dir}/{cell}.txt","content":"one\ntwo\n"}}`},
		{method: "tools/call", params: `{"name":"edit_file","arguments":{"path":"{dir}/{cell}.txt","edits":[{"oldText":"two","newText":"three"}]}}`},
		{method: "tools/call", params: `{"name":"read_text_file","arguments":{"path":"{dir}/{cell}.txt"}}`},
		{method: "tools/call", params: `{"name":"list_allowed_directories","arguments":{}}`},
		{method: "tools/call", params: `{"name":"read_text_file","arguments":{"path":"/etc/passwd"}}`},
	},
}

// answersGiven are what clients say when they are asked.
var answersGiven = map[string]json.RawMessage{
	"elicitation/create":     json.RawMessage(`{"action":"accept","content":{"name":"Ada","username":"ada","email":"ada@example.com","color":"red","ok":true}}`),
	"sampling/createMessage": json.RawMessage(`{"role":"assistant","content":{"type":"text","text":"something"},"model":"none","stopReason":"endTurn"}`),
}
