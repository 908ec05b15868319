package telemetry

import (
	"net"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trace"
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
	return strings.ToValidUTF8(mcp.Truncate(t.secrets.String(s), mostText), "�")
}

// target returns what the name of a span has after the method: the tool or prompt. URIs
// would make too many names. Parts of a call have none.
func (t *Tracer) target(method string, r *trace.Request) string {
	if method == r.Method && (method == spec.MethodToolsCall || method == spec.MethodPromptsGet) {
		return t.text(r.Name)
	}
	return ""
}

// requestAttributes appends those of a client's request.
func (t *Tracer) requestAttributes(dst []byte, r *trace.Request, outcome string) []byte {
	dst = appendText(dst, spanAttributes, attrServer, r.Server)
	dst = appendText(dst, spanAttributes, attrEra, r.Era)
	dst = appendText(dst, spanAttributes, attrRequest, r.RequestID())
	dst = appendText(dst, spanAttributes, attrOutcome, outcome)
	dst = t.common(dst, r.Method, r, r.ID, r.Revision)
	dst = appendText(dst, spanAttributes, attrSession, t.text(r.Session))
	dst = appendText(dst, spanAttributes, attrUser, t.text(r.Principal))
	dst = appendText(dst, spanAttributes, attrClient, t.text(mcp.ClientName(r.ClientInfo)))
	if r.Arrival == nil {
		return dst
	}
	dst = network(dst, r.Arrival.Protocol, r.Arrival.Version)
	return hostPort(dst, attrClientAddress, attrClientPort, r.Arrival.Peer)
}

// exchangeAttributes appends those of a request to a server.
func (t *Tracer) exchangeAttributes(dst []byte, x *trace.Exchange) []byte {
	dst = appendText(dst, spanAttributes, attrServer, x.Server)
	dst = appendText(dst, spanAttributes, attrEra, x.Era)
	dst = t.common(dst, x.Method, x.Request(), strconv.FormatInt(x.ID, 10), x.Revision)
	dst = appendText(dst, spanAttributes, attrSession, t.text(x.Session))
	dst = network(dst, x.Protocol, "")
	return hostPort(dst, attrServerAddress, attrServerPort, x.Address)
}

// common appends what the spans of both sides have: method is that of the span, and r the
// client's request.
func (t *Tracer) common(dst []byte, method string, r *trace.Request, id, revision string) []byte {
	dst = appendText(dst, spanAttributes, attrMethod, t.text(method))
	dst = appendText(dst, spanAttributes, attrID, t.text(unquoted(id)))
	dst = appendText(dst, spanAttributes, attrRevision, t.text(revision))
	if method != r.Method {
		return dst
	}
	switch method {
	case spec.MethodToolsCall:
		dst = appendText(dst, spanAttributes, attrTool, t.text(r.Name))
		return appendText(dst, spanAttributes, attrOperation, "execute_tool")
	case spec.MethodPromptsGet:
		return appendText(dst, spanAttributes, attrPrompt, t.text(r.Name))
	case spec.MethodResourcesRead, spec.MethodSubscribe, spec.MethodUnsubscribe:
		return appendText(dst, spanAttributes, attrURI, t.text(r.Name))
	}
	return dst
}

// network appends the transport. A pipe has no protocol.
func network(dst []byte, protocol, version string) []byte {
	if protocol == "" {
		return appendText(dst, spanAttributes, attrTransport, "pipe")
	}
	dst = appendText(dst, spanAttributes, attrTransport, "tcp")
	dst = appendText(dst, spanAttributes, attrProtocol, protocol)
	return appendText(dst, spanAttributes, attrProtocolVersion, strings.TrimSuffix(version, ".0"))
}

func hostPort(dst []byte, address, port, text string) []byte {
	if text == "" {
		return dst
	}
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return appendText(dst, spanAttributes, address, text)
	}
	dst = appendText(dst, spanAttributes, address, host)
	if n, err := strconv.ParseUint(number, 10, 16); err == nil {
		dst = appendInt(dst, spanAttributes, port, n)
	}
	return dst
}

// unquoted returns an id without the quotes of a string.
func unquoted(id string) string {
	if strings.HasPrefix(id, `"`) {
		return wire.Unquote([]byte(id))
	}
	return id
}
