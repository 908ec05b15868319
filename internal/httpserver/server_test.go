package httpserver

import (
	"crypto/tls"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

func TestProtocols(t *testing.T) {
	r := start(t, 0)
	for want, change := range map[string]func(*http.Transport){
		"HTTP/2.0": nil,
		"HTTP/1.1": func(tr *http.Transport) {
			tr.ForceAttemptHTTP2, tr.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
		},
	} {
		if got, err := r.get(r.client(t, change)); got != want || err != nil {
			t.Errorf("GET = %q, %v, want %s", got, err, want)
		}
	}
	if _, err := r.get(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}); err == nil {
		t.Error("a client that does not trust the authority was served")
	}
}

// While certificates are replaced, one file after the other as tools do it, no request
// fails, on connections that stay or on new ones.
func TestRotationUnderLoad(t *testing.T) {
	r := start(t, 0)
	var served sync.Map // serial numbers
	requests := new(atomic.Int64)
	stop := make(chan struct{})
	var all sync.WaitGroup
	work := func(c *http.Client) {
		for {
			select {
			case <-stop:
				return
			default:
			}
			resp, err := c.Get("https://" + r.Addr().String())
			if err != nil {
				t.Errorf("GET = %v", err)
				return
			}
			served.Store(resp.TLS.PeerCertificates[0].SerialNumber.String(), true)
			_ = resp.Body.Close()
			requests.Add(1)
		}
	}
	end := sync.OnceFunc(func() { close(stop); all.Wait() })
	defer end() // if a certificate isn't served
	all.Go(func() { work(r.client(t, nil)) })
	for range 3 {
		all.Go(func() { work(r.client(t, func(tr *http.Transport) { tr.DisableKeepAlives = true })) })
	}
	bridgetest.Eventually(t, "a certificate is served", func() bool { return count(&served) == 1 })
	for n := range 3 {
		cert, key := r.authority.Issue(bridgetest.Leaf{})
		replace(t, r.cert, cert)
		time.Sleep(50 * time.Millisecond)
		replace(t, r.key, key)
		bridgetest.Eventually(t, "the next certificate is served", func() bool { return count(&served) == n+2 })
	}
	end()
	t.Logf("%d requests, %d certificates", requests.Load(), count(&served))
}

func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func count(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

// Connections in reserve do not hold up a shutdown, whose server knows of them.
func TestShutdownClosesSilentConnections(t *testing.T) {
	r := start(t, 0)
	conns := r.dial(t, 5)
	if _, err := r.get(r.client(t, nil)); err != nil { // so that they were accepted
		t.Fatal(err)
	}
	begun := time.Now()
	if err := r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("Shutdown took %v", took)
	}
	for _, c := range conns {
		if !closed(c) {
			t.Error("a connection is still open")
		}
	}
	<-r.Done()
	if r.Err() != nil {
		t.Errorf("Err() = %v", r.Err())
	}
}
