package front

import (
	"context"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An httpReply is the reply to a request over HTTP. That of a listen stream outlives its
// handler; because ten thousand of them may be idle, it keeps nothing of its request.
type httpReply struct {
	reply // of which it is the replyWriter
	res   *downstream.Response
	forms forms
	addr  string // the client's

	// What opens a listen stream; nil in the reply of a listen stream.
	w http.ResponseWriter
	r *http.Request
}

func newHTTPReply(f *Front, w http.ResponseWriter, r *http.Request, id wire.ID) *httpReply {
	var both struct { // in one allocation
		reply httpReply
		res   downstream.Response
	}
	both.res.Init(w, f.opts.WriteTimeout)
	both.reply = httpReply{reply: reply{front: f, id: id}, res: &both.res, forms: accepted(r.Header), addr: r.RemoteAddr, w: w, r: r}
	both.reply.writer = &both.reply
	return &both.reply
}

func (hr *httpReply) streams() bool                        { return hr.forms.stream }
func (hr *httpReply) peer() string                         { return hr.addr }
func (hr *httpReply) put(msg []byte) error                 { return hr.res.Gather(msg) }
func (hr *httpReply) flush() error                         { return hr.res.Flush() }
func (hr *httpReply) cause(ctx context.Context) error      { return hr.res.Cause(ctx) }
func (hr *httpReply) stopKeepAlive()                       { hr.res.StopKeepAlive() }
func (hr *httpReply) turns() *wake.Turns                   { return hr.res.Turns() }
func (hr *httpReply) opened(*fanout.Mailbox) (shared bool) { return false }

// keepAlive sends comments while the response is open, if the client accepts a stream.
func (hr *httpReply) keepAlive() {
	if hr.forms.stream {
		hr.res.KeepAlive(hr.front.opts.KeepAlive)
	}
}

// listen sends the headers and a comment before it asks the server: some clients wait for
// the headers without a time limit, and some proxies delay a response until its first
// byte. If possible, the stream continues without the handler.
func (hr *httpReply) listen(_ context.Context, _ *fanout.Mailbox, open openStream) error {
	hr.res.Close() // Streams makes another Response
	s := &httpReply{reply: reply{front: hr.front, id: hr.id}, forms: forms{stream: true}, addr: hr.addr}
	s.writer = s
	hr.front.opts.Streams.ServeTurns(hr.w, hr.r, hr.front.opts.WriteTimeout, func(ctx context.Context, res *downstream.Response) downstream.Turn {
		s.res = res
		return s.open(ctx, open)
	})
	return nil
}

// open begins a listen stream, and returns what writes the rest of it.
func (hr *httpReply) open(ctx context.Context, open openStream) downstream.Turn {
	if hr.res.Comment() != nil {
		return nil // the client has left
	}
	turn, err := open(ctx, &hr.reply)
	switch {
	case err != nil:
		hr.fail(err)
		return nil
	case turn == nil:
		return nil
	}
	return func() bool {
		over := turn()
		if opts := &hr.front.opts; over {
			downstream.ReportStray(ctx, opts.Metrics, opts.Name, opts.Logger, "upstream", opts.Name, "downstream", hr.addr)
		}
		return over
	}
}

// respond writes the response as JSON or, if there is a stream, on that.
func (hr *httpReply) respond(status int, msg downstream.Message) error {
	if hr.forms.json {
		if err := hr.res.JSON(status, msg); err != downstream.ErrStreaming {
			hr.replied(status)
			return err
		}
	}
	err := hr.res.Last(msg.Bytes())
	hr.replied(http.StatusOK)
	return err
}

// replied tells the observers of the header of the response, which is written.
func (hr *httpReply) replied(status int) {
	if hr.w != nil {
		hr.trace.Head(trace.Head{Direction: trace.Sent, Status: status, Fields: hr.w.Header()})
	}
}

func (hr *httpReply) notAcceptable() {
	text := wire.AppendError(nil, hr.id, wire.Errorf(spec.CodeInvalidRequest,
		"the Accept header excludes the form of this response; send Accept: %s, %s", spec.TypeJSON, spec.TypeStream))
	_ = hr.res.JSON(http.StatusNotAcceptable, downstream.Message{Text: text}) // the client has gone if it fails
}
