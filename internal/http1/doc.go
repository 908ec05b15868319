// Package http1 answers one question: how to ask an HTTP/1.1 server something
// with the least work?
//
// net/http's client gives each connection two goroutines, so that a request
// passes through three, and bodies and errors through channels between them. A
// [Transport] lets the goroutine that asks write the request and read the
// response by itself. A connection that nobody uses has no goroutine at all:
// before it is used again the kernel is asked whether the server has closed it.
//
// It does HTTP/1.1 to the server that the URL names, with TLS once the server has
// chosen HTTP/1.1 by ALPN. HTTP/2, proxies, upgrades and bodies of unknown length are
// left to an [http.Transport]. It refuses to know what is in a body: nothing is
// unpacked.
package http1
