// Package visit sends the users of clients to the pages of logins that servers want: of one login
// for all, while it is under way, and of each principal's own.
//
// How a client is told depends on its era, and on what it declares: see docs/decisions/0014. What
// logins are, and where their pages, it does not know.
package visit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// visitPatience is how long a call waits for a login after its client went to the page.
	visitPatience = 45 * time.Second
	// visitKey is the key of the input request for a login, where nothing parks.
	visitKey = "dev.mcpbridge/login"
)

// A visiting handler sends the clients of a server to a page where a person can log in, if a
// call could not be run without a login, and the client takes URLs. Then it sends the call
// again: the server has not run it.
//
// Spec: 2026-07-28, client/elicitation, URL Mode Elicitation Requests.
type visiting struct {
	next   mcp.Handler
	server string
	where  func() *mcp.Visit // nil for nowhere
	era    func() spec.Era   // the server's: while it is unknown, no call is sent

	// mu guards asking: the page to which one client is being sent. Further calls wait with it.
	mu     sync.Mutex
	asking string
}

// Options say which logins a server wants.
type Options struct {
	Server string
	// Where returns where a person can log in to the server, while requests have to wait for
	// that; nil for nowhere. Where is nil where nobody can be asked.
	Where func() *mcp.Visit
	// Era is the server's.
	Era func() spec.Era
	// Logins are those of each principal; nil if the server has none.
	Logins Logins
}

// Handler returns next with logins; next itself if the server has none.
func Handler(o Options, next mcp.Handler) mcp.Handler {
	if o.Where != nil {
		next = &visiting{next: next, server: o.Server, where: o.Where, era: o.Era}
	}
	if o.Logins != nil {
		next = &linking{next: next, server: o.Server, logins: o.Logins}
	}
	return next
}

// Serve implements [mcp.Handler].
func (v *visiting) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	if !spec.MayAsk(req.Method) || mcp.MissingCapability(req.Capabilities, spec.MethodElicit, []byte(`{"mode":"url"}`)) != nil {
		return v.next.Serve(ctx, req, c)
	}
	asked, answer := withoutVisit(req)
	if answer != nil {
		if err := v.heed(ctx, answer, v.where()); err != nil {
			return nil, err
		}
	}
	unknown := v.era() == spec.Unknown
	res, err := v.next.Serve(ctx, asked, c)
	at := v.where()
	unsent := errors.As(err, new(*mcp.LoginError)) || unknown && v.era() == spec.Unknown
	if err == nil || at == nil || answer != nil || !unsent {
		return res, err
	}
	done, failed := v.visit(ctx, req, c, at)
	switch {
	case failed != nil:
		return nil, failed
	case done != nil:
		return done, nil
	}
	return v.next.Serve(ctx, asked, c)
}

// visit sends the client to the page, and waits for the login. It returns a result if the client
// has to send the call again.
func (v *visiting) visit(ctx context.Context, req *mcp.Request, c mcp.Caller, at *mcp.Visit) (*mcp.Result, error) {
	if !v.begin(at) {
		return nil, wait(ctx, at) // another call has sent the client there
	}
	defer v.end()
	params := visitParams(fmt.Sprintf("The server %q wants you to log in. The page opens in a browser, and the call goes on after it.", v.server), at.URL)
	answers, err := requestUntil(ctx, c, params, at.Done)
	switch {
	case errors.Is(err, errVisited):
		return nil, nil
	case errors.Is(err, mcp.ErrCannotAsk) && req.Era == spec.Modern:
		return visitResult(params), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, nil // the call then fails as it would have
	case answers[0].Err != nil:
		return nil, v.undecided()
	}
	return nil, v.heed(ctx, answers[0].Result, at)
}

func (v *visiting) begin(at *mcp.Visit) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asking == at.URL {
		return false
	}
	v.asking = at.URL
	return true
}

func (v *visiting) end() {
	v.mu.Lock()
	v.asking = ""
	v.mu.Unlock()
}

// errVisited is why a client need not answer any more: the login has ended.
var errVisited = errors.New("the login has ended")

// requestUntil asks the client, until done is closed.
func requestUntil(ctx context.Context, c mcp.Caller, params []byte, done <-chan struct{}) ([]mcp.InputResponse, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { // ends with ctx
		select {
		case <-done:
			cancel(errVisited)
		case <-ctx.Done():
		}
	})
	defer watching.Wait()
	defer cancel(nil)
	return c.RequestInput(ctx, []mcp.InputRequest{{Method: spec.MethodElicit, Params: params}})
}

// heed does what a person's answer says, and waits for the login if that is to go to the page.
// at is nil if the login has ended.
func (v *visiting) heed(ctx context.Context, answer []byte, at *mcp.Visit) error {
	switch action, _ := wire.GetString(answer, "action"); action {
	case "accept":
		if at != nil {
			return wait(ctx, at)
		}
		return nil
	case "decline":
		if at != nil {
			at.Decline()
		}
		return wire.Errorf(spec.CodeInternal, "server %q wants a login, which was declined; nobody is asked again for a while: to log in, run mcpbridge login %s -c FILE with the configuration", v.server, v.server)
	}
	return v.undecided()
}

func (v *visiting) undecided() error {
	return wire.Errorf(spec.CodeInternal, "server %q wants a login, and the page for it was not opened; send the call again, or run mcpbridge login %s -c FILE with the configuration", v.server, v.server)
}

// wait waits for the end of a login. If it takes long, the call tells the client so.
func wait(ctx context.Context, at *mcp.Visit) error {
	late := time.NewTimer(visitPatience)
	defer late.Stop()
	select {
	case <-at.Done:
	case <-late.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// visitResult is the answer to a call of a server to whose calls nothing parks: the client sends
// it again with its answer.
//
// Spec: 2026-07-28, basic/patterns/mrtr, InputRequiredResult.
func visitResult(params []byte) *mcp.Result {
	body := fmt.Appendf(nil, `{"resultType":%q,"inputRequests":{%q:{"method":%q,"params":%s}}}`, spec.ResultInputRequired, visitKey, spec.MethodElicit, params)
	res := mcp.NewResult(body, nil)
	res.Era = spec.Modern
	return res
}

// withoutVisit takes the answer to visitResult out of a request; nil if there is none.
func withoutVisit(req *mcp.Request) (*mcp.Request, []byte) {
	responses := wire.GetSeldom(req.Params, "inputResponses")
	answer := wire.Get(responses, visitKey)
	if req.Era != spec.Modern || answer == nil {
		return req, nil
	}
	out := *req
	out.Params = wire.AppendEdited(nil, req.Params, wire.Edit{Name: "inputResponses", Value: wire.Without(responses, visitKey)})
	out.Plain = wire.Plain{}
	return &out, answer
}
