// Package upstream is what the backs of both eras do alike to reach one server: HTTP
// requests whose replies are JSON or event streams, calls that share one connection, and
// what becomes of a request that got no response.
//
// A back makes the request and hands it over as a [Call]. [HTTP] posts it and gives a
// [Reply], which is read message by message up to the response. What prevents a response
// is a [*Failure], which says whether the server may have acted on the request.
//
// The package knows no era: sessions, envelopes and headers are the backs' own.
package upstream
