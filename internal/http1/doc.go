// Package http1 is an HTTP/1.1 client that does as little work per request as possible.
//
// net/http's client has two goroutines per connection, so that a request involves three,
// and passes bodies and errors between them over channels. With a [Transport], the
// calling goroutine writes the request and reads the response itself. An idle connection
// has no goroutine: before it is reused, the Transport asks the kernel whether the server
// has closed it.
//
// It connects directly to the server in the URL, and uses TLS if the server has chosen
// HTTP/1.1 by ALPN. It leaves HTTP/2, proxies, upgrades and bodies of unknown length to
// an [http.Transport]. It does not decompress bodies.
package http1
