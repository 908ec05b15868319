package front

import (
	"context"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
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

func (p *httpReply) streams() bool                        { return p.forms.stream }
func (p *httpReply) peer() string                         { return p.addr }
func (p *httpReply) put(msg []byte) error                 { return p.res.Gather(msg) }
func (p *httpReply) flush() error                         { return p.res.Flush() }
func (p *httpReply) cause(ctx context.Context) error      { return p.res.Cause(ctx) }
func (p *httpReply) stopKeepAlive()                       { p.res.StopKeepAlive() }
func (p *httpReply) opened(*fanout.Mailbox) (shared bool) { return false }

// keepAlive sends comments while the response is open, if the client accepts a stream.
func (p *httpReply) keepAlive() {
	if p.forms.stream {
		p.res.KeepAlive(p.front.opts.KeepAlive)
	}
}

// listen sends the headers and a comment before it asks the server: some clients wait for
// the headers without a time limit, and some proxies delay a response until its first
// byte. If possible, the stream continues without the handler.
func (p *httpReply) listen(_ context.Context, _ *fanout.Mailbox, open openStream) error {
	p.res.Close() // Streams makes another Response
	s := &httpReply{reply: reply{front: p.front, id: p.id}, forms: forms{stream: true}, addr: p.addr}
	s.writer = s
	p.front.opts.Streams.Serve(p.w, p.r, p.front.opts.WriteTimeout, func(ctx context.Context, res *downstream.Response) (rest func()) {
		s.res = res
		return s.open(ctx, open)
	})
	return nil
}

// open begins a listen stream, and returns a function that writes the rest of it.
func (p *httpReply) open(ctx context.Context, open openStream) (rest func()) {
	if p.res.Comment() != nil {
		return nil // the client has left
	}
	write, err := open(ctx, &p.reply)
	switch {
	case err != nil:
		p.fail(err)
		return nil
	case write == nil:
		return nil
	}
	return func() {
		write()
		opts := &p.front.opts
		downstream.ReportStray(ctx, opts.Metrics, opts.Name, opts.Logger, "upstream", opts.Name, "downstream", p.addr)
	}
}

// respond writes the response as JSON or, if there is a stream, on that.
func (p *httpReply) respond(status int, msg downstream.Message) error {
	if p.forms.json {
		if err := p.res.JSON(status, msg); err != downstream.ErrStreaming {
			return err
		}
	}
	return p.res.Last(msg.Bytes())
}

func (p *httpReply) notAcceptable() {
	text := wire.AppendError(nil, p.id, wire.Errorf(spec.CodeInvalidRequest,
		"the Accept header excludes the form of this response; send Accept: %s, %s", protocol.TypeJSON, protocol.TypeStream))
	_ = p.res.JSON(http.StatusNotAcceptable, downstream.Message{Text: text}) // the client has gone if it fails
}
