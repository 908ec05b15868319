package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// The variables that this package reads itself. The SDK reads the others: those of the
// exporter (OTEL_EXPORTER_OTLP_*), the sampler, the batches, the limits and the resource.
const (
	disabledVar    = "OTEL_SDK_DISABLED"
	exporterVar    = "OTEL_TRACES_EXPORTER"
	endpointVar    = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesVar      = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	protocolVar    = "OTEL_EXPORTER_OTLP_PROTOCOL"
	traceProtoVar  = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	propagatorsVar = "OTEL_PROPAGATORS"
)

// The protocols of the exporter.
const (
	overHTTP = "http/protobuf"
	overGRPC = "grpc"
)

// Options configure a Tracer beside the environment.
type Options struct {
	Version string           // of the program
	Secrets *redact.Redactor // are hidden in spans; nil for none
	Logger  *slog.Logger     // is told of what can't be exported
	// Lost counts the spans that could not be exported. Nil counts none.
	Lost func(spans int)
}

// Wanted reports whether the environment asks for traces: it names where they go, or an
// exporter.
func Wanted() bool {
	if strings.EqualFold(os.Getenv(disabledVar), "true") {
		return false
	}
	switch os.Getenv(exporterVar) {
	case "none":
		return false
	case "":
		return os.Getenv(endpointVar) != "" || os.Getenv(tracesVar) != ""
	}
	return true
}

// Open returns a Tracer, or nil if the environment asks for none. The error names the
// variable and what to write instead.
func Open(ctx context.Context, o Options) (*Tracer, error) {
	if !Wanted() {
		return nil, nil
	}
	if e := os.Getenv(exporterVar); e != "" && e != "otlp" {
		return nil, fmt.Errorf("%s is %q; mcpbridge has otlp and none", exporterVar, e)
	}
	t := &Tracer{secrets: o.Secrets}
	if err := t.propagate(os.Getenv(propagatorsVar)); err != nil {
		return nil, err
	}
	to, err := newExporter(ctx)
	if err != nil {
		return nil, err
	}
	t.exports = newExports(to, o)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.exports.warn)) // of what the SDK reads in the environment
	res, err := newResource(ctx, o.Version)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t.use(sdktrace.NewTracerProvider(sdktrace.WithBatcher(t.exports), sdktrace.WithResource(res)), o.Version)
	return t, nil
}

func (t *Tracer) use(p *sdktrace.TracerProvider, version string) {
	t.provider, t.tracer = p, p.Tracer(scope, oteltrace.WithInstrumentationVersion(version))
}

// newExporter returns the exporter of the protocol that the environment names.
func newExporter(ctx context.Context) (to sdktrace.SpanExporter, err error) {
	name := protocolVar
	if os.Getenv(traceProtoVar) != "" {
		name = traceProtoVar
	}
	switch protocol := os.Getenv(name); protocol {
	case "", overHTTP:
		to, err = otlptracehttp.New(ctx)
	case overGRPC:
		to, err = otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("%s is %q; mcpbridge exports by %s and %s", name, protocol, overHTTP, overGRPC)
	}
	if err != nil {
		return nil, fmt.Errorf("exporting traces by OTLP: %w; see the variables OTEL_EXPORTER_OTLP_*", err)
	}
	return to, nil
}

// propagate sets which contexts are read and sent. The protocol has places for those of the
// W3C alone.
func (t *Tracer) propagate(names string) error {
	if names == "" {
		names = "tracecontext,baggage"
	}
	for name := range strings.SplitSeq(names, ",") {
		switch strings.TrimSpace(name) {
		case "tracecontext":
			t.contexts = true
		case "baggage":
			t.baggage = true
		case "none":
		default:
			return fmt.Errorf("%s has %q; mcpbridge has tracecontext, baggage and none, for which MCP has members of _meta", propagatorsVar, name)
		}
	}
	return nil
}

// newResource returns the description of this process. The environment wins.
func newResource(ctx context.Context, version string) (*resource.Resource, error) {
	own := []attribute.KeyValue{attribute.String("service.name", "mcpbridge"), attribute.String("service.version", version)}
	own = slices.DeleteFunc(own, func(kv attribute.KeyValue) bool { return kv.Value.AsString() == "" })
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(own...), resource.WithFromEnv())
}
