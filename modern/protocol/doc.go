// Package protocol is what the front and the back of the modern era spell alike: values of
// Mcp-* headers, the parameters of tools that headers mirror, the filter of a listen
// request, media types and the shapes of input responses.
//
// It sends nothing and keeps nothing but what tool lists said of headers.
package protocol
