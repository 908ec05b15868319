package visit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Logins are those of principals at one server.
type Logins interface {
	// Link returns the URL of a page on which a principal can log in.
	Link(mcp.Principal) string
	// Missing reports whether a principal has to log in before requests of it can be sent.
	Missing(ctx context.Context, p mcp.Principal) bool
	// Await waits until a principal has a login, or for at most so long.
	Await(ctx context.Context, p mcp.Principal, most time.Duration)
}

// A linking handler tells clients where their user can log in, if a request could not be sent
// without a login of its principal. What a request is answered with depends on what its client
// understands. The server has not seen it, so it can be sent again.
//
// Spec: 2026-07-28, client/elicitation, URL Mode Elicitation Requests; 2025-11-25,
// client/elicitation, URL Elicitation Required Error.
type linking struct {
	next   mcp.Handler
	server string
	logins Logins
}

// Serve implements [mcp.Handler].
func (l *linking) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	asked, answer := withoutVisit(req)
	if answer != nil {
		if err := l.heed(ctx, req.Principal, answer); err != nil {
			return nil, err
		}
	}
	res, err := l.next.Serve(ctx, asked, c)
	if wants := (*mcp.LoginError)(nil); err == nil || !errors.As(err, &wants) {
		return res, err
	}
	return l.send(req, err)
}

// heed waits for the login, if the user has gone to the page.
func (l *linking) heed(ctx context.Context, p mcp.Principal, answer []byte) error {
	if action, _ := wire.GetString(answer, "action"); action != "accept" {
		return wire.Errorf(spec.CodeInternal, "server %q wants a login of yours, and its page was not opened; send the call again to get the page again", l.server)
	}
	l.logins.Await(ctx, p, visitPatience)
	return ctx.Err()
}

// send returns where the user of a request can log in: as an answer that is no result yet, or as
// an error.
func (l *linking) send(req *mcp.Request, cause error) (*mcp.Result, error) {
	if req.Era == spec.Modern && spec.MayAsk(req.Method) && opensPages(req) {
		return withState(visitResult(visitParams(messageOf(l.server), l.logins.Link(req.Principal))), req), nil
	}
	told := Error(l.server, l.logins, req)
	page := &mcp.PageError{Cause: cause, Told: told}
	if told.Code == spec.CodeURLElicitation {
		p := req.Principal
		page.ID, page.Await = idIn(told), func(ctx context.Context) bool {
			l.logins.Await(ctx, p, linkLife)
			return ctx.Err() == nil && !l.logins.Missing(ctx, p)
		}
	}
	return nil, page
}

// opensPages reports whether the client of a request opens pages.
func opensPages(req *mcp.Request) bool {
	return mcp.MissingCapability(req.Capabilities, spec.MethodElicit, []byte(`{"mode":"url"}`)) == nil
}

func messageOf(server string) string {
	return fmt.Sprintf("The server %q wants you to log in. The page opens in a browser.", server)
}

// Error returns the error that tells the client of a request where its user can log in to a server.
func Error(server string, logins Logins, req *mcp.Request) *wire.Error {
	url := logins.Link(req.Principal)
	if req.Era == spec.Legacy && opensPages(req) {
		return required(server, messageOf(server), url)
	}
	return &wire.Error{
		Code: spec.CodeInternal, Data: wire.AppendEdited(nil, nil, wire.Edit{Name: "url", Value: wire.Quote(url)}),
		Message: fmt.Sprintf("server %q wants you to log in: open %s in a browser within 10 minutes, then send this again", server, url),
	}
}

// visitParams are those of the request to open a page.
func visitParams(message, url string) []byte {
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: "mode", Value: []byte(`"url"`)},
		wire.Edit{Name: "message", Value: wire.Quote(message)},
		wire.Edit{Name: "url", Value: wire.Quote(url)})
}

// withState adds to an answer the requestState that its request came with, which the client would
// otherwise leave out the next time.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Client Requirements.
func withState(res *mcp.Result, req *mcp.Request) *mcp.Result {
	if state := wire.GetSeldom(req.Params, "requestState"); state != nil {
		res.Body = wire.AppendEdited(nil, res.Body, wire.Edit{Name: "requestState", Value: state})
	}
	return res
}

// required is the error of legacy clients that take URLs. The id of an elicitation is the end of
// its link, which is another one each time.
func required(server, message, url string) *wire.Error {
	params := wire.AppendEdited(nil, visitParams(message, url), wire.Edit{Name: "elicitationId", Value: wire.Quote(url[max(0, len(url)-elicitationID):])})
	return &wire.Error{
		Code: spec.CodeURLElicitation, Message: fmt.Sprintf("server %q wants you to log in at the page in data, then send this again", server),
		Data: wire.AppendEdited(nil, nil, wire.Edit{Name: "elicitations", Value: slices.Concat([]byte("["), params, []byte("]"))}),
	}
}

// idIn returns the id of the elicitation that an error requires.
func idIn(e *wire.Error) (id string) {
	for one := range wire.Elements(wire.Get(e.Data, "elicitations")) {
		id, _ = wire.GetString(one, "elicitationId")
	}
	return id
}

const (
	// elicitationID is how long the ids of elicitations are.
	elicitationID = 32
	// linkLife is how long a link is good.
	linkLife = 10 * time.Minute
)

// Undescribed is the description of a server that says nothing of itself without a login: what any
// server may have. A client that can't begin can't be sent to a login.
func Undescribed() *mcp.Description {
	return &mcp.Description{Capabilities: json.RawMessage(`{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}`)}
}
