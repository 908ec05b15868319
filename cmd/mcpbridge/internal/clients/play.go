package clients

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Way is how messages reach a server. It is one connection, or one session.
type Way interface {
	// Send sends one message. id is that of the response to wait for; zero for none.
	Send(ctx context.Context, verb string, header http.Header, body []byte, id wire.ID) (Answer, error)
	io.Closer
}

// An Answer is what a message was answered with.
type Answer struct {
	Status  int    // of HTTP; zero over a pipe
	Session string // Mcp-Session-Id
	Message wire.Message
	Text    string // what was no message, in part
}

// A Refusal is a message that a server did not take.
type Refusal struct {
	Message string `json:"message"`          // its method
	Status  int    `json:"status,omitempty"` // of HTTP
	Code    int64  `json:"code,omitempty"`   // of JSON-RPC
	Why     string `json:"why"`
}

// An Outcome is what became of an opening.
type Outcome struct {
	Connects bool      `json:"connects"`
	Revision string    `json:"revision,omitempty"` // that the client speaks then
	Refused  *Refusal  `json:"refused,omitempty"`  // what ended it
	Beside   []Refusal `json:"beside,omitempty"`   // what was refused, and did not end it
}

// Play sends the opening of a client.
func Play(ctx context.Context, c *Client, w Way) Outcome {
	p := player{client: c, way: w}
	steps := c.Legacy
	if c.Discover != nil {
		answer, refused := p.send(ctx, c.Discover)
		switch {
		case refused == nil && speaksModern(answer.Message.Result) && len(c.Modern) > 0:
			steps, p.revision = c.Modern, string(spec.LatestModern)
		case len(c.Legacy) == 0 && refused != nil:
			return Outcome{Refused: refused}
		case len(c.Legacy) == 0:
			steps = c.Modern
		}
	}
	var out Outcome
	for i := range steps {
		_, refused := p.send(ctx, &steps[i])
		switch {
		case refused == nil:
		case !steps[i].Optional:
			out.Refused = refused
			return out
		default:
			out.Beside = append(out.Beside, *refused)
		}
	}
	out.Connects, out.Revision = true, p.revision
	return out
}

// speaksModern reports whether a result is that of a server of the modern revision.
func speaksModern(result []byte) bool {
	return slices.ContainsFunc(slices.Collect(wire.Elements(wire.Get(result, "supportedVersions"))), func(v []byte) bool {
		return wire.Unquote(v) == string(spec.LatestModern)
	})
}

// A player plays one opening.
type player struct {
	client            *Client
	way               Way
	session, revision string // as far as known
}

func (p *player) send(ctx context.Context, m *Message) (Answer, *Refusal) {
	verb, method, id := m.Verb, m.Verb, wire.ID{}
	if m.Body != nil {
		verb, method = http.MethodPost, wire.Unquote(wire.Get(m.Body, "method"))
		if text := wire.Get(m.Body, "id"); text != nil {
			id, _ = wire.ParseID(text) // a test parses each
		}
	}
	answer, err := p.way.Send(ctx, verb, p.header(m), m.Body, id)
	if err != nil {
		return answer, &Refusal{Message: method, Status: answer.Status, Why: err.Error()}
	}
	if refused := judge(&answer, method, !id.IsZero()); refused != nil {
		return answer, refused
	}
	if method == spec.MethodInitialize {
		p.session = answer.Session
		p.revision, _ = wire.GetString(answer.Message.Result, "protocolVersion")
	}
	return answer, nil
}

// judge returns why an answer is a refusal, or nil.
func judge(a *Answer, method string, wanted bool) *Refusal {
	r := &Refusal{Message: method, Status: a.Status, Why: a.Text}
	switch {
	case a.Message.Error != nil:
		r.Code, r.Why = a.Message.Error.Code, a.Message.Error.Message
	case a.Status >= 300 && (method != http.MethodGet || a.Status != http.StatusMethodNotAllowed):
		// A server without a stream for GET says 405, and clients go on.
		if r.Why == "" {
			r.Why = http.StatusText(a.Status)
		}
	case wanted && a.Message.Result == nil:
		r.Why = errNoResponse.Error()
	default:
		return nil
	}
	return r
}

var errNoResponse = errors.New("no response in the reply")

// header returns that of a message.
func (p *player) header(m *Message) http.Header {
	h := make(http.Header)
	for _, of := range []map[string]string{p.client.Header, m.Header} {
		for name, value := range of {
			unknown := strings.Contains(value, "{session}") && p.session == "" || strings.Contains(value, "{revision}") && p.revision == ""
			if value == "" || unknown {
				h.Del(name)
				continue
			}
			h.Set(name, strings.NewReplacer("{session}", p.session, "{revision}", p.revision).Replace(value))
		}
	}
	return h
}
