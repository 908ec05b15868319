package http1

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkRoundTrip compares a call with one through net/http's client. Both include the
// server's time.
func BenchmarkRoundTrip(b *testing.B) {
	for _, n := range []int{100, 64 << 10, 1 << 20} {
		text := []byte(long(max(n, 16)))
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			_, _ = w.Write(text)
		}))
		other := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
		lean := NewTransport(other)
		for _, rt := range []struct {
			name string
			http.RoundTripper
		}{{"lean", lean}, {"nethttp", other}} {
			b.Run(fmt.Sprintf("%s/bytes=%d", rt.name, n), func(b *testing.B) {
				buf := make([]byte, n+512)
				b.ReportAllocs()
				for b.Loop() {
					readInto(b, rt, newRequest(b.Context(), "POST", s.URL, text[:16]), buf)
				}
			})
		}
		lean.CloseIdleConnections()
		s.Close()
	}
}

func readInto(b *testing.B, rt http.RoundTripper, req *http.Request, buf []byte) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	for err == nil {
		_, err = resp.Body.Read(buf)
	}
	if err != io.EOF {
		b.Fatal(err)
	}
	_ = resp.Body.Close()
}

// BenchmarkTLS compares a call to an https server with one through net/http's client,
// by HTTP/1.1 and by HTTP/2.
func BenchmarkTLS(b *testing.B) {
	for _, n := range []int{100, 64 << 10, 1 << 20} {
		text := []byte(long(max(n, 16)))
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			_, _ = w.Write(text)
		}))
		s.EnableHTTP2 = true
		s.StartTLS()
		clientOf := func(h2 bool) *http.Transport {
			conf := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			conf.NextProtos = nil
			return &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, TLSClientConfig: conf, ForceAttemptHTTP2: h2}
		}
		lean := NewTransport(clientOf(false))
		for _, rt := range []struct {
			name string
			http.RoundTripper
		}{{"lean", lean}, {"nethttp", clientOf(false)}, {"http2", clientOf(true)}} {
			b.Run(fmt.Sprintf("%s/bytes=%d", rt.name, n), func(b *testing.B) {
				buf := make([]byte, n+512)
				readInto(b, rt, newRequest(b.Context(), "POST", s.URL, text[:16]), buf)
				b.ReportAllocs()
				for b.Loop() {
					readInto(b, rt, newRequest(b.Context(), "POST", s.URL, text[:16]), buf)
				}
			})
		}
		lean.CloseIdleConnections()
		s.Close()
	}
}
