//go:build linux

package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// runProxy is the proxy that a user would write: ReverseProxy, with the buffers
// pooled, enough idle connections, and what it takes not to lose answers.
func runProxy(c *control, o roleOptions) error {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = 256
	target := &url.URL{Scheme: "http", Host: o.upstream}
	p := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:  t,
		BufferPool: &copyBuffers{},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return c.serve(l, readFirst(p))
}

// readFirst reads a request's body before it is passed on. Without, ReverseProxy
// loses answers: net/http closes the body once the response begins, the transport
// may not have seen its end by then, takes that for an error, and drops the
// connection with the answer on it (golang/go#40747).
func readFirst(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, max(r.ContentLength, 0))
		if _, err := io.ReadFull(r.Body, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// copyBuffers is a pool of the size that ReverseProxy itself would allocate.
type copyBuffers struct{ pool sync.Pool }

func (b *copyBuffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, 32<<10)
}

func (b *copyBuffers) Put(buf []byte) { b.pool.Put(&buf) }
