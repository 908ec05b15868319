package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// Variables that this package reads itself. The clients read the others of the exporter
// (OTEL_EXPORTER_OTLP_*), and the SDK those of the resource.
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
	var err error
	if t.sampler, err = newSampler(); err != nil {
		return nil, err
	}
	limits, err := newBatchLimits()
	if err != nil {
		return nil, err
	}
	res, err := newResource(ctx, o.Version)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	lost := newLosses(o)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { lost.report(0, err) })) // of what the clients read in the environment
	client, err := newClient()
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("exporting traces by OTLP: %w; see the variables OTEL_EXPORTER_OTLP_*", err)
	}
	t.batch = newBatch(client, limits, res, o.Version, lost)
	return t, nil
}

// newClient returns the client of the protocol that the environment names. It reads the other
// variables OTEL_EXPORTER_OTLP_*.
func newClient() (otlptrace.Client, error) {
	name := protocolVar
	if os.Getenv(traceProtoVar) != "" {
		name = traceProtoVar
	}
	switch protocol := os.Getenv(name); protocol {
	case "", overHTTP:
		return otlptracehttp.NewClient(), nil
	case overGRPC:
		return otlptracegrpc.NewClient(), nil
	default:
		return nil, fmt.Errorf("%s is %q; mcpbridge exports by %s and %s", name, protocol, overHTTP, overGRPC)
	}
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
func newResource(ctx context.Context, version string) (*resourcepb.Resource, error) {
	own := []attribute.KeyValue{attribute.String("service.name", "mcpbridge")}
	if version != "" {
		own = append(own, attribute.String("service.version", version))
	}
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(own...), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	out := &resourcepb.Resource{}
	for _, kv := range res.Attributes() {
		value := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: kv.Value.String()}}
		if kv.Value.Type() == attribute.INT64 {
			value = &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: kv.Value.AsInt64()}}
		}
		out.Attributes = append(out.Attributes, &commonpb.KeyValue{Key: string(kv.Key), Value: value})
	}
	return out, nil
}
