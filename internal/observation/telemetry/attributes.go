package telemetry

import (
	"net"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// The attributes.
//
// Spec: OpenTelemetry semantic conventions for MCP, Spans. Those that begin with mcpbridge
// are the gateway's own.
const (
	attrMethod          = "mcp.method.name"
	attrRevision        = "mcp.protocol.version"
	attrSession         = "mcp.session.id"
	attrURI             = "mcp.resource.uri"
	attrID              = "jsonrpc.request.id"
	attrStatus          = "rpc.response.status_code"
	attrErrorType       = "error.type"
	attrTool            = "gen_ai.tool.name"
	attrPrompt          = "gen_ai.prompt.name"
	attrOperation       = "gen_ai.operation.name"
	attrTransport       = "network.transport"
	attrProtocol        = "network.protocol.name"
	attrProtocolVersion = "network.protocol.version"
	attrClientAddress   = "client.address"
	attrClientPort      = "client.port"
	attrServerAddress   = "server.address"
	attrServerPort      = "server.port"
	attrUser            = "enduser.id"

	attrServer  = "mcpbridge.server"
	attrEra     = "mcpbridge.era"
	attrClient  = "mcpbridge.client"
	attrRequest = "mcpbridge.request.id"
	attrOutcome = "mcpbridge.outcome"
	attrVia     = "mcpbridge.via"
	attrInput   = "mcpbridge.input.method"
	attrReason  = "mcpbridge.reason"
)

// eventNames has the names of events, and detailKeys the attributes of their details.
var (
	eventNames = func() (out [trace.Resumed + 1]string) {
		for k := range out {
			out[k] = "mcpbridge." + trace.Kind(k).String()
		}
		return out
	}()
	detailKeys = [trace.Resumed + 1]string{
		trace.InputRequired: attrInput, trace.InputAnswered: attrInput,
		trace.SessionLost: attrReason, trace.Repeated: attrReason,
	}
)

// mostText bounds one text of a span, in bytes.
const mostText = 1 << 10

// text returns what a span may have of a text that came from outside.
func (t *Tracer) text(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToValidUTF8(mcp.Truncate(t.secrets.String(s), mostText), "�")
}

// requestAttributes appends those of a client's request.
func (r *record) requestAttributes(dst []byte, req *trace.Request, outcome string) []byte {
	c := kind{server: req.Server, era: req.Era, method: r.method, revision: req.Revision, outcome: outcome}
	a := req.Arrival
	if a != nil {
		c.transport, c.protocol, c.version = transportOf(a.Protocol), a.Protocol, a.Version
	}
	dst = r.t.appendKind(dst, &c)
	dst = r.subject(dst, req.Method)
	var few [32]byte // which is as much as a string needs no memory for
	dst = appendText(dst, spanAttributes, attrRequest, string(req.AppendRequestID(few[:0])))
	dst = appendText(dst, spanAttributes, attrID, r.t.text(unquoted(req.ID)))
	dst = appendText(dst, spanAttributes, attrSession, r.t.text(req.Session))
	dst = appendText(dst, spanAttributes, attrUser, r.t.text(req.Principal))
	dst = appendText(dst, spanAttributes, attrClient, r.t.text(r.t.clients.Of(req.ClientInfo)))
	if a == nil {
		return dst
	}
	dst = appendText(dst, spanAttributes, attrVia, a.Via)
	return hostPort(dst, attrClientAddress, attrClientPort, a.Peer)
}

// exchangeAttributes appends those of a request to a server; method is as spans have it.
func (r *record) exchangeAttributes(dst []byte, x *trace.Exchange, method string) []byte {
	dst = r.t.appendKind(dst, &kind{
		server: x.Server, era: x.Era, method: method, revision: x.Revision,
		transport: transportOf(x.Protocol), protocol: x.Protocol, address: x.Address,
	})
	if x.Method == x.Request().Method {
		dst = r.subject(dst, x.Method)
	}
	var few [20]byte
	return appendText(dst, spanAttributes, attrID, string(strconv.AppendInt(few[:0], x.ID, 10)))
}

// subject appends what the request's own method is about.
func (r *record) subject(dst []byte, method string) []byte {
	switch method {
	case spec.MethodToolsCall:
		dst = appendText(dst, spanAttributes, attrTool, r.name)
		return appendText(dst, spanAttributes, attrOperation, "execute_tool")
	case spec.MethodPromptsGet:
		return appendText(dst, spanAttributes, attrPrompt, r.name)
	case spec.MethodResourcesRead, spec.MethodSubscribe, spec.MethodUnsubscribe:
		return appendText(dst, spanAttributes, attrURI, r.name)
	}
	return dst
}

func hostPort(dst []byte, address, port, text string) []byte {
	if text == "" {
		return dst
	}
	host, number, ok := splitHostPort(text)
	if !ok {
		return appendText(dst, spanAttributes, address, text)
	}
	dst = appendText(dst, spanAttributes, address, host)
	if n, err := strconv.ParseUint(number, 10, 16); err == nil {
		dst = appendInt(dst, spanAttributes, port, n)
	}
	return dst
}

// splitHostPort is [net.SplitHostPort], but for host names and IPv4 addresses it does no more
// than looking for the colon.
func splitHostPort(text string) (host, port string, ok bool) {
	host, port, ok = strings.Cut(text, ":")
	if ok && host != "" && host[0] != '[' && strings.IndexByte(port, ':') < 0 {
		return host, port, true
	}
	host, port, err := net.SplitHostPort(text)
	return host, port, err == nil
}

// unquoted returns an id without the quotes of a string.
func unquoted(id string) string {
	if strings.HasPrefix(id, `"`) {
		return wire.Unquote([]byte(id))
	}
	return id
}
