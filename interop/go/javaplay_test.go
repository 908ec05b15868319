package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A playedClient posts recorded messages over HTTP+SSE and reads what comes.
type playedClient struct {
	ctx    context.Context // of the play, which a client begins and ends with
	stream *bufio.Scanner
	post   string // where to
}

// playJava makes the call with what the SDK sent on an earlier occasion; only the
// tool's name and arguments, what is filled in, and the answer's id are others.
func playJava(ctx context.Context, _ *testing.T, c *javaCall) (told javaTold, err error) {
	lines, err := javaMessages()
	if err != nil {
		return told, err
	}
	if len(lines) != 4 {
		return told, fmt.Errorf("%d messages are recorded, want 4", len(lines))
	}
	p, end, err := dialPlayed(ctx, c.base, c.path)
	if err != nil {
		return told, err
	}
	defer end()
	hello, err := p.send(lines[0])
	if err != nil {
		return told, err
	}
	result, _ := hello["result"].(map[string]any)
	told.ProtocolVersion, _ = result["protocolVersion"].(string)
	if _, err := p.send(lines[1]); err != nil {
		return told, err
	}
	lines[2]["params"] = map[string]any{"name": c.tool, "arguments": json.RawMessage(c.arguments)}
	question, err := p.send(lines[2])
	if err != nil {
		return told, err
	}
	if question["method"] != "elicitation/create" {
		return told, fmt.Errorf("the call is followed by %v, want a question", question)
	}
	told.Asked = []any{question["params"]}
	lines[3]["id"] = question["id"]
	lines[3]["result"].(map[string]any)["content"] = json.RawMessage(c.content)
	if _, err := p.send(lines[3]); err != nil {
		return told, err
	}
	last, err := p.next()
	told.Result = last["result"]
	return told, err
}

// dialPlayed opens the stream and reads where to post.
func dialPlayed(ctx context.Context, base, path string) (*playedClient, func() error, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	p := &playedClient{ctx: ctx, stream: bufio.NewScanner(res.Body)}
	p.stream.Buffer(nil, 1<<20)
	at, err := p.data()
	if err != nil {
		return nil, nil, errors.Join(err, res.Body.Close())
	}
	p.post = base + at
	return p, res.Body.Close, nil
}

// send posts a message, and returns what comes next if it is a request.
func (p *playedClient) send(m map[string]any) (map[string]any, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(p.ctx, http.MethodPost, p.post, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if err := res.Body.Close(); err != nil || res.StatusCode/100 != 2 {
		return nil, fmt.Errorf("posting %s: %s, %v", body, res.Status, err)
	}
	if m["method"] == nil || m["id"] == nil {
		return nil, nil
	}
	return p.next()
}

// next returns the next message.
func (p *playedClient) next() (m map[string]any, err error) {
	data, err := p.data()
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal([]byte(data), &m)
}

// data returns the data of the next event. Those of mcpbridge have one line each.
func (p *playedClient) data() (string, error) {
	for p.stream.Scan() {
		if data, ok := strings.CutPrefix(p.stream.Text(), "data: "); ok {
			return data, nil
		}
	}
	return "", errors.Join(errors.New("the stream has ended"), p.stream.Err())
}
