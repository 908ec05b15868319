// Package mcp is the narrow waist between fronts and backs: one request,
// everything that may happen before its result, and the interest in changes.
//
// It answers "what do two halves of different eras have to tell each other?".
// A front maps its era's messages to a [Request] and hands it to a [Handler]; a
// back is a Handler that serves the Request from an upstream of its own era. Two
// eras so cost four adapters and no pair is a case of its own.
//
// Params, results and capabilities are JSON as it came; the package refuses to
// know what they say. It holds no logic of either era and does no I/O. Where
// the eras name one thing differently (an error code, say) the modern name
// stands here.
package mcp
