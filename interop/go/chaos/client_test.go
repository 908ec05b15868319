package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

// lastID gives every request an id of its own.
var lastID atomic.Int64

// An answer is what came back for one request.
type answer struct {
	err      error // of the transport, or of what came
	text     string
	code     int64  // of a JSON-RPC error; 0 for a result
	message  string // of that error, or of a tool's
	isError  bool   // of a tool's result
	again    round  // an input_required result, if it has a state
	nonce    string
	answers  []string
	contents string // the text of what was read
}

// A round is an input_required result.
type round struct {
	state     string
	questions map[string]string // key -> message
}

// problem says why an answer is no plain result, "" if it is.
func (a *answer) problem() string {
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.code != 0 || a.isError || a.again.state != "":
		return a.text
	}
	return ""
}

// retry returns the params that answer a round: each question with what it says.
func (r round) retry() string {
	responses := make(map[string]any)
	for key, message := range r.questions {
		responses[key] = map[string]any{"action": "accept", "content": map[string]any{"nonce": "re " + message}}
	}
	text, err := json.Marshal(responses)
	if err != nil {
		panic(err) // strings alone
	}
	return fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, text, r.state)
}

// tool calls a tool. more are further params.
func (w *world) tool(ctx context.Context, name string, args map[string]any, more string) answer {
	text, err := json.Marshal(args)
	if err != nil {
		return answer{err: err}
	}
	return w.send(ctx, "tools/call", name, fmt.Sprintf(`"name":%q,"arguments":%s%s`, name, text, more))
}

func (w *world) read(ctx context.Context, uri string) answer {
	return w.send(ctx, "resources/read", uri, fmt.Sprintf(`"uri":%q`, uri))
}

// post sends a request and returns the response as it begins.
func (w *world) post(ctx context.Context, id int64, method, name, params string) (*http.Response, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`, id, method, envelope, params)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.listen+"/mcp/legacy", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method":           {method},
	}
	if name != "" {
		req.Header.Set("Mcp-Name", name)
	}
	return w.clients.Do(req)
}

// send sends a request and wants exactly one response to it.
func (w *world) send(ctx context.Context, method, name, params string) answer {
	id := lastID.Add(1)
	res, err := w.post(ctx, id, method, name, params)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{err: fmt.Errorf("reading the response, of which %q came: %w", body, err)}
	}
	texts := []string{string(body)}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		texts = nil
		for line := range strings.Lines(string(body)) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && !strings.Contains(data, `"method":"notifications/`) {
				texts = append(texts, data)
			}
		}
	}
	if len(texts) != 1 {
		return answer{err: fmt.Errorf("%d responses came: %q", len(texts), body)}
	}
	return parse(id, texts[0])
}

func parse(id int64, text string) (a answer) {
	var m struct {
		ID     int64
		Result *struct {
			ResultType    string
			IsError       bool
			Content       []struct{ Text string }
			Contents      []struct{ Text string }
			InputRequests map[string]struct {
				Params struct{ Message string }
			}
			RequestState      string
			StructuredContent struct {
				Nonce   string
				Answers []string
			}
		}
		Error *struct {
			Code    int64
			Message string
		}
	}
	a.text = text
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.ID != id || (m.Result == nil) == (m.Error == nil) {
		a.err = fmt.Errorf("the response to %d is %.500q, %v", id, text, err)
		return a
	}
	if m.Error != nil {
		a.code, a.message = m.Error.Code, m.Error.Message
		return a
	}
	r := m.Result
	a.isError, a.nonce, a.answers, a.again.state = r.IsError, r.StructuredContent.Nonce, r.StructuredContent.Answers, r.RequestState
	if r.IsError && len(r.Content) > 0 {
		a.message = r.Content[0].Text
	}
	if len(r.Contents) == 1 {
		a.contents = r.Contents[0].Text
	}
	a.again.questions = make(map[string]string)
	for key, q := range r.InputRequests {
		a.again.questions[key] = q.Params.Message
	}
	if (a.again.state != "") != (r.ResultType == "input_required" && len(r.InputRequests) > 0) {
		a.err = fmt.Errorf("the result is half an input_required: %s", text)
	}
	return a
}
