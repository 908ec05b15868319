// Package telemetry makes OpenTelemetry traces of what package trace observes: a span for
// each request of a client, and one for each request to a server. Names and attributes are
// those of the semantic conventions for MCP. It is configured by the standard environment
// variables alone, and exports by OTLP over HTTP.
package telemetry
