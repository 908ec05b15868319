package chaos

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// A weather is what a proxy does to requests.
type weather string

const (
	fair     weather = "fair"
	hang     weather = "hang"     // take requests and say nothing, until it clears up
	missing  weather = "404"      // without asking the server
	broken   weather = "500"      // without asking the server
	garbage  weather = "garbage"  // 200 and no JSON, without asking the server
	halfway  weather = "half-way" // cut responses off in the middle, and open streams
	mumbling weather = "mumbling" // end responses in the middle as if that were all, and open streams
)

var storms = []weather{hang, missing, broken, garbage, halfway, mumbling}

// A proxy stands between mcpbridge and its server, and lies about it. It never
// says of a request that it was refused when it was not.
type proxy struct {
	*httptest.Server
	next http.Handler

	mu      sync.Mutex
	weather weather
	changed chan struct{} // closed when the weather changes
	hurt    map[weather]int
}

func newProxy(t *testing.T, base string) *proxy {
	t.Helper()
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0)
	p := &proxy{weather: fair, changed: make(chan struct{}), hurt: make(map[weather]int)}
	p.next = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1, // at once
		ErrorLog:      quiet,
	}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.Config.ErrorLog = quiet
	p.Start()
	t.Cleanup(func() { p.CloseClientConnections(); p.Server.Close() })
	return p
}

// turn changes the weather.
func (p *proxy) turn(to weather) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = to
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *proxy) look() (weather, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hurt[p.weather]++
	return p.weather, p.changed
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	now, changed := p.look()
	switch now {
	case hang:
		select {
		case <-changed: // and now it is too late
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case missing, broken:
		status := map[weather]int{missing: http.StatusNotFound, broken: http.StatusInternalServerError}[now]
		http.Error(w, "the weather", status)
		return
	case garbage:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc": <html>`) // whoever does not read it has left
		return
	}
	defer func() {
		if e := recover(); e != nil && e != errMumbled {
			panic(e)
		}
	}()
	p.next.ServeHTTP(&torn{ResponseWriter: w, p: p}, r)
}

// errMumbled ends a response as if it were whole.
var errMumbled = errors.New("mumbled")

// A torn response is one that bad weather may cut.
type torn struct {
	http.ResponseWriter
	p *proxy
}

func (t *torn) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *torn) Write(b []byte) (int, error) {
	t.p.mu.Lock()
	now := t.p.weather
	t.p.mu.Unlock()
	switch {
	case now != halfway && now != mumbling:
		return t.ResponseWriter.Write(b)
	case len(b) > 1:
		_, _ = t.ResponseWriter.Write(b[:len(b)/2])
		_ = http.NewResponseController(t.ResponseWriter).Flush()
	}
	if now == mumbling {
		panic(errMumbled)
	}
	panic(http.ErrAbortHandler)
}
