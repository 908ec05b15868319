package telemetry

import (
	"errors"
	"net"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

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
	attrMethod          = attribute.Key("mcp.method.name")
	attrRevision        = attribute.Key("mcp.protocol.version")
	attrSession         = attribute.Key("mcp.session.id")
	attrURI             = attribute.Key("mcp.resource.uri")
	attrID              = attribute.Key("jsonrpc.request.id")
	attrStatus          = attribute.Key("rpc.response.status_code")
	attrErrorType       = attribute.Key("error.type")
	attrTool            = attribute.Key("gen_ai.tool.name")
	attrPrompt          = attribute.Key("gen_ai.prompt.name")
	attrOperation       = attribute.Key("gen_ai.operation.name")
	attrTransport       = attribute.Key("network.transport")
	attrProtocol        = attribute.Key("network.protocol.name")
	attrProtocolVersion = attribute.Key("network.protocol.version")
	attrClientAddress   = attribute.Key("client.address")
	attrClientPort      = attribute.Key("client.port")
	attrServerAddress   = attribute.Key("server.address")
	attrServerPort      = attribute.Key("server.port")
	attrUser            = attribute.Key("enduser.id")

	attrServer  = attribute.Key("mcpbridge.server")
	attrEra     = attribute.Key("mcpbridge.era")
	attrClient  = attribute.Key("mcpbridge.client")
	attrRequest = attribute.Key("mcpbridge.request.id")
	attrOutcome = attribute.Key("mcpbridge.outcome")
	attrInput   = attribute.Key("mcpbridge.input.method")
	attrReason  = attribute.Key("mcpbridge.reason")
)

// linkRetry is of the link from a request to the one that it repeats, or brings input to.
var linkRetry = attribute.String("mcpbridge.link", "retry")

// detailKeys has the attribute of the detail of an event.
var detailKeys = map[trace.Kind]attribute.Key{
	trace.InputRequired: attrInput, trace.InputAnswered: attrInput,
	trace.SessionLost: attrReason, trace.Repeated: attrReason,
}

// mostText bounds one text of an attribute, in bytes.
const mostText = 1 << 10

// text returns what a span may have of a text that came from outside.
func (t *Tracer) text(s string) string { return mcp.Truncate(t.secrets.String(s), mostText) }

// spanName returns the name of a span.
func spanName(method, target string) string {
	if target == "" {
		return method
	}
	return method + " " + target
}

// target returns what the name of a span has after the method: the tool or prompt. URIs
// would make too many names.
func (t *Tracer) target(r *trace.Request) string {
	if r.Method == spec.MethodToolsCall || r.Method == spec.MethodPromptsGet {
		return t.text(r.Name)
	}
	return ""
}

// targetOf is target for a request to a server: parts of a call have none.
func (t *Tracer) targetOf(x *trace.Exchange) string {
	if r := x.Request(); x.Method == r.Method {
		return t.target(r)
	}
	return ""
}

// requestAttributes returns those of a client's request.
func (t *Tracer) requestAttributes(r *trace.Request) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, 18)
	out = append(out, attrServer.String(r.Server), attrEra.String(r.Era), attrRequest.String(r.RequestID()))
	out = t.common(out, r.Method, r, r.ID, r.Revision)
	out = appendText(out, attrSession, r.Session)
	out = appendText(out, attrUser, t.text(r.Principal))
	out = appendText(out, attrClient, t.text(mcp.ClientName(r.ClientInfo)))
	if r.Arrival == nil {
		return out
	}
	out = network(out, r.Arrival.Protocol, r.Arrival.Version)
	return hostPort(out, attrClientAddress, attrClientPort, r.Arrival.Peer)
}

// exchangeAttributes returns those of a request to a server.
func (t *Tracer) exchangeAttributes(x *trace.Exchange) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, 16)
	out = append(out, attrServer.String(x.Server), attrEra.String(x.Era))
	out = t.common(out, x.Method, x.Request(), strconv.FormatInt(x.ID, 10), x.Revision)
	out = appendText(out, attrSession, x.Session)
	out = network(out, x.Protocol, "")
	return hostPort(out, attrServerAddress, attrServerPort, x.Address)
}

// common appends what the spans of both sides have: method is that of the span, and r the
// client's request.
func (t *Tracer) common(out []attribute.KeyValue, method string, r *trace.Request, id, revision string) []attribute.KeyValue {
	out = append(out, attrMethod.String(t.text(method)), attrID.String(t.text(unquoted(id))))
	out = appendText(out, attrRevision, t.text(revision))
	if method != r.Method || r.Name == "" {
		return out
	}
	switch name := t.text(r.Name); method {
	case spec.MethodToolsCall:
		out = append(out, attrTool.String(name), attrOperation.String("execute_tool"))
	case spec.MethodPromptsGet:
		out = append(out, attrPrompt.String(name))
	case spec.MethodResourcesRead, spec.MethodSubscribe, spec.MethodUnsubscribe:
		out = append(out, attrURI.String(name))
	}
	return out
}

func appendText(out []attribute.KeyValue, key attribute.Key, text string) []attribute.KeyValue {
	if text == "" {
		return out
	}
	return append(out, key.String(text))
}

// network appends the transport. A pipe has no protocol.
func network(out []attribute.KeyValue, protocol, version string) []attribute.KeyValue {
	if protocol == "" {
		return append(out, attrTransport.String("pipe"))
	}
	out = append(out, attrTransport.String("tcp"), attrProtocol.String(protocol))
	return appendText(out, attrProtocolVersion, strings.TrimSuffix(version, ".0"))
}

func hostPort(out []attribute.KeyValue, address, port attribute.Key, text string) []attribute.KeyValue {
	if text == "" {
		return out
	}
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return append(out, address.String(text))
	}
	out = append(out, address.String(host))
	if n, err := strconv.Atoi(number); err == nil {
		out = append(out, port.Int(n))
	}
	return out
}

// unquoted returns an id without the quotes of a string.
func unquoted(id string) string {
	if strings.HasPrefix(id, `"`) {
		return wire.Unquote([]byte(id))
	}
	return id
}

// fail sets the status of a span that failed. err is nil for a success.
//
// Spec: OpenTelemetry, Recording errors.
func (t *Tracer) fail(span oteltrace.Span, err error) {
	if err == nil || !span.IsRecording() {
		return
	}
	span.SetAttributes(attrErrorType.String(mcp.ErrorType(err)))
	var we *wire.Error
	switch {
	case errors.Is(err, mcp.ErrToolFailed):
		span.SetStatus(codes.Error, "")
	case errors.As(err, &we):
		span.SetAttributes(attrStatus.String(strconv.FormatInt(we.Code, 10)))
		span.SetStatus(codes.Error, t.text(we.Message))
	default:
		span.SetStatus(codes.Error, t.text(err.Error()))
	}
}
