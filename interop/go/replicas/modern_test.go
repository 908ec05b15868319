package replicas

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/listen"
)

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"replicas","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

// lastID gives every request an id of its own.
var lastID atomic.Int64

// An answer is what came back for one request.
type answer struct {
	err    error // of the transport, or of what came
	status int
	text   string // the message
	code   int64  // of a JSON-RPC error; 0 for a result
	said   string // the message of that error, or the first text of a result
	took   time.Duration

	state     string            // of an input_required result
	questions map[string]string // key -> message
}

// problem says why an answer is no plain result, "" if it is.
func (a *answer) problem() string {
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.code != 0 || a.status != http.StatusOK || a.state != "" || strings.Contains(a.text, `"isError":true`):
		return fmt.Sprintf("%d %s", a.status, a.text)
	}
	return ""
}

// retry returns the params that answer the questions, each with what it says.
func (a *answer) retry() string {
	responses := make(map[string]any)
	for key, message := range a.questions {
		responses[key] = map[string]any{"action": "accept", "content": map[string]any{"nonce": message}}
	}
	text, err := json.Marshal(responses)
	if err != nil {
		panic(err) // strings alone
	}
	return fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, text, a.state)
}

// callTool calls a tool at a URL as a modern client. header may be nil.
func (w *world) callTool(ctx context.Context, url, name string, args any, more string, header http.Header) answer {
	text, err := json.Marshal(args)
	if err != nil {
		return answer{err: err}
	}
	return w.ask(ctx, url, "tools/call", name, fmt.Sprintf(`"name":%q,"arguments":%s%s`, name, text, more), header)
}

// mark calls the tool that both servers write down in their ledgers.
func (w *world) mark(ctx context.Context, url, nonce string) answer {
	return w.callTool(ctx, url, "mark", map[string]any{"nonce": nonce}, "", nil)
}

// ask sends a modern request.
func (w *world) ask(ctx context.Context, url, method, name, params string, header http.Header) answer {
	begun, id := time.Now(), lastID.Add(1)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`, id, method, envelope, params)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
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
	for key, values := range header {
		req.Header[key] = values
	}
	a := exchange(w.clients, req, id)
	a.took = time.Since(begun)
	return a
}

// answerTime is the longest that any answer is waited for.
const answerTime = time.Minute

// exchange sends a request and reads the one response to the id.
func exchange(c *http.Client, req *http.Request, id int64) answer {
	ctx, cancel := context.WithTimeout(req.Context(), answerTime)
	defer cancel()
	res, err := c.Do(req.WithContext(ctx))
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	a := answer{status: res.StatusCode}
	if err != nil {
		a.err = fmt.Errorf("reading the response, of which %.300q came: %w", body, err)
		return a
	}
	texts := []string{strings.TrimSpace(string(body))}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		texts = nil
		for line := range strings.Lines(string(body)) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && !strings.Contains(data, `"method":`) && strings.TrimSpace(data) != "" {
				texts = append(texts, strings.TrimSpace(data))
			}
		}
	}
	if len(texts) != 1 {
		a.err = fmt.Errorf("status %d, %d responses: %.300q", a.status, len(texts), body)
		return a
	}
	a.parse(id, texts[0])
	return a
}

func (a *answer) parse(id int64, text string) {
	var m struct {
		ID     json.RawMessage
		Result *struct {
			Content       []struct{ Text string }
			Contents      []struct{ Text string }
			InputRequests map[string]struct {
				Params struct{ Message string }
			}
			RequestState string
		}
		Error *struct {
			Code    int64
			Message string
		}
	}
	a.text = text
	err := json.Unmarshal([]byte(text), &m)
	if err != nil || (m.Result == nil) == (m.Error == nil) || m.Result != nil && string(m.ID) != fmt.Sprint(id) {
		a.err = fmt.Errorf("status %d: the response to %d is %.300q, %v", a.status, id, text, err)
		return
	}
	if m.Error != nil {
		a.code, a.said = m.Error.Code, m.Error.Message
		return
	}
	for _, c := range append(m.Result.Content, m.Result.Contents...) {
		if a.said == "" {
			a.said = c.Text
		}
	}
	a.state, a.questions = m.Result.RequestState, make(map[string]string)
	for key, q := range m.Result.InputRequests {
		a.questions[key] = q.Params.Message
	}
}

// A stream is one listen stream of a modern client, at a replica.
type stream struct {
	*listen.Stream
	at    *replica
	want  []string // topics
	asked int64    // when, in nanoseconds
}

// listen opens a stream at a replica. A topic is a URI or listen.Tools.
func (w *world) listen(r *replica, server string, topics ...string) (*stream, error) {
	asked := time.Now().UnixNano()
	s, err := listen.Dial(listen.Request{Addr: r.listen, Server: server, Meta: envelope, ID: fmt.Sprint(lastID.Add(1)), Want: listen.FilterOf(topics...)})
	if err != nil {
		return nil, err
	}
	return &stream{s, r, topics, asked}, nil
}

// mustListen opens a stream that ends with the test, and waits for the acknowledgment.
func (w *world) mustListen(r *replica, server string, topics ...string) *stream {
	w.t.Helper()
	s, err := w.listen(r, server, topics...)
	if err == nil {
		w.t.Cleanup(s.Close)
		err = s.Wait(recovery)
	}
	if err != nil {
		w.t.Fatalf("listening at %s: %v", r.name, err)
	}
	return s
}
