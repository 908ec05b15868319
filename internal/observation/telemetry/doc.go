// Package telemetry makes OpenTelemetry traces of what package trace observes: a span for
// each request of a client, and one for each request to a server. Names and attributes are
// those of the semantic conventions for MCP. It is configured by the standard environment
// variables alone, and exports by OTLP.
//
// Spans are written as OTLP has them when they end: there are no objects in between, whose
// cost would be half of that of a small call. The exporter's client, the resource and the
// formats are OpenTelemetry's own.
package telemetry
