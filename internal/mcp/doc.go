// Package mcp has the interfaces between fronts and backs: a request and its result, the
// way back to its caller, and subscriptions to changes.
//
// A front converts messages of its era to a [Request] and passes it to a [Handler]. A
// back is a Handler that serves the Request with a server of its own era. So two eras
// need four adapters, and no pair of eras is a special case.
//
// Params, results and capabilities are unchanged JSON, which the package does not
// interpret. It has no logic of either era and does no I/O. If the eras differ in the
// name of something, such as an error code, the package uses the modern one.
package mcp
