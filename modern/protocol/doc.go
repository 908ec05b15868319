// Package protocol has what the front and the back of the modern era share: values of Mcp-*
// headers, the parameters of tools that are mirrored in headers, listen filters and their
// acknowledgments, media types, capabilities, input responses, and tasks as legacy clients
// read them.
//
// It sends nothing, and stores only the header annotations of tool lists.
package protocol
