// Package upstream has what the backs of both eras need to reach a server: HTTP requests
// whose replies are JSON or event streams, calls that share one connection, and the errors
// of requests without a response.
//
// A back creates the request and a [Call]. [HTTP] posts it and returns a [Reply], which is
// read message by message up to the response. If there is no response, the error is a
// [*Failure], which says whether the server may have run the request.
//
// The package knows no era: sessions, envelopes and headers belong to the backs.
package upstream
