//lint:file-ignore SA1019 What is deprecated in 2026-07-28 is part of it all the same.

package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A dialog asks the client in rounds, without a memory of its own: what was
// answered in former rounds travels in requestState.
type dialog struct {
	rounds [][]question // those of a round are asked together
	state  bool         // requestState is sent, and wanted back, in the first round too
}

// A question is an entry of inputRequests.
type question struct {
	key string
	ask mcp.InputRequest
	// read returns what the client says, and whether it is an answer at all. An
	// error ends the dialog.
	read func(mcp.InputResponse) (answer string, ok bool, err error)
}

// progress is what requestState says, under a MAC.
type progress struct {
	Round   int
	Answers map[string]string
}

// turn is what a dialog has come to: answers, or questions still to be asked.
type turn struct {
	answers map[string]string // by key; nil if there is something to ask
	ask     mcp.InputRequestMap
	state   string
	round   int // which is being asked, from 1
}

// take reads a request and returns whose turn it is. A requestState that is not
// this server's own is an error.
func (d *dialog) take(responses mcp.InputResponseMap, state string) (*turn, error) {
	p := progress{Answers: make(map[string]string)}
	if state != "" {
		if err := unseal(state, &p); err != nil || p.Round >= len(d.rounds) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the requestState is not one of ours"}
		}
	}
	if state != "" || !d.state {
		answered, err := p.read(d.rounds[p.Round], responses)
		if err != nil {
			return nil, err
		}
		if answered {
			p.Round++
		}
	}
	if p.Round == len(d.rounds) {
		return &turn{answers: p.Answers}, nil
	}
	return d.ask(&p)
}

// read takes in the answers to one round, if all are there.
func (p *progress) read(round []question, responses mcp.InputResponseMap) (bool, error) {
	answers := make(map[string]string)
	for _, q := range round {
		answer, ok, err := q.read(responses[q.key])
		if err != nil || !ok {
			return false, err
		}
		answers[q.key] = answer
	}
	maps.Copy(p.Answers, answers)
	return true, nil
}

func (d *dialog) ask(p *progress) (*turn, error) {
	t := &turn{ask: make(mcp.InputRequestMap), round: p.Round + 1}
	for _, q := range d.rounds[p.Round] {
		t.ask[q.key] = q.ask
	}
	if !d.state && p.Round == 0 {
		return t, nil
	}
	var err error
	t.state, err = seal(p)
	return t, err
}

// form asks for one value of a JSON type, under name.
func form(key, message, name, kind string) question {
	return fields(key, message, map[string]any{name: map[string]any{"type": kind}}, []string{name}, func(content map[string]any) (string, bool) {
		v, ok := content[name]
		return fmt.Sprint(v), ok && v != ""
	})
}

// fields asks for several values; read makes one answer of them.
func fields(key, message string, properties map[string]any, required []string, read func(map[string]any) (string, bool)) question {
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return question{key, &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: schema},
		func(r mcp.InputResponse) (string, bool, error) {
			res, ok := r.(*mcp.ElicitResult)
			if !ok {
				return "", false, nil
			}
			if res.Action != "accept" {
				return "", false, fmt.Errorf("asking for %s: the answer is %s", key, res.Action)
			}
			answer, ok := read(res.Content)
			return answer, ok, nil
		}}
}

// page asks the user to go to a page; the answer is the action.
func page(key, message, url string) question {
	return question{key, &mcp.ElicitParams{Mode: "url", Message: message, URL: url},
		func(r mcp.InputResponse) (string, bool, error) {
			res, ok := r.(*mcp.ElicitResult)
			if !ok {
				return "", false, nil
			}
			return res.Action, true, nil
		}}
}

// sample has the client's model complete a prompt.
func sample(key, prompt string, maxTokens int64) question {
	ask := &mcp.CreateMessageParams{
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: prompt}}},
		MaxTokens: maxTokens,
	}
	return question{key, ask, func(r mcp.InputResponse) (string, bool, error) {
		res, ok := r.(*mcp.CreateMessageWithToolsResult)
		if !ok || len(res.Content) == 0 {
			return "", false, nil
		}
		t, ok := res.Content[0].(*mcp.TextContent)
		if !ok {
			return "", false, fmt.Errorf("sampling: got %T, want text", res.Content[0])
		}
		return t.Text, true, nil
	}}
}

// roots asks which folders the client shows; the answer is their URIs.
func roots(key string) question {
	return question{key, &mcp.ListRootsParams{}, func(r mcp.InputResponse) (string, bool, error) {
		res, ok := r.(*mcp.ListRootsResult)
		if !ok {
			return "", false, nil
		}
		uris := ""
		for _, root := range res.Roots {
			uris += root.URI + " "
		}
		return uris, true, nil
	}}
}

// key is of this process alone: a restart makes every requestState void.
var key = []byte(rand.Text())

func mac(b []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(b)
	return h.Sum(nil)
}

func seal(p *progress) (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(mac(b), b...)), nil
}

func unseal(state string, p *progress) error {
	b, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		return err
	}
	if len(b) < sha256.Size || !hmac.Equal(b[:sha256.Size], mac(b[sha256.Size:])) {
		return fmt.Errorf("the MAC is wrong")
	}
	return json.Unmarshal(b[sha256.Size:], p)
}
