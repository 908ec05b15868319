package login

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const callbackPath = "/callback"

// A callback is the redirect URI's server: a listener on loopback. It accepts one
// authorization response, that to its own request.
//
// Spec: RFC 8252, 7.3.
type callback struct {
	listeners []net.Listener
	at        string   // host and port of the redirect URI
	uris      []string // those that a client has to have
	server    *http.Server
	want      expected
	answers   chan answer // capacity 1
	done      sync.WaitGroup
}

// expected is what the response must contain. It belongs to one request.
type expected struct {
	state       string
	issuer      string // from the metadata, which was checked
	sendsIssuer bool
}

// An answer is the outcome of the authorization request.
type answer struct {
	code string
	err  error
}

func (c *callback) redirectURI() string { return "http://" + c.at + callbackPath }

// expect starts to serve. Call it once, before the browser is opened.
func (c *callback) expect(want expected) {
	c.want = want
	c.server = &http.Server{Handler: c, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	for _, l := range c.listeners {
		c.done.Go(func() { _ = c.server.Serve(l) }) // ends with close
	}
}

// close closes the listener, after the browser has got its page.
func (c *callback) close() {
	if c.server == nil {
		for _, l := range c.listeners {
			_ = l.Close() // it was not served
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		_ = c.server.Close() // a connection without a request
	}
	c.done.Wait()
}

// await returns the code of the response, which comes from the browser, or from a person in
// a line.
func (c *callback) await(ctx context.Context, lines <-chan string) (string, error) {
	for {
		select {
		case a := <-c.answers:
			return a.code, a.err
		case line, open := <-lines:
			if !open {
				lines = nil
				continue
			}
			if u, err := url.Parse(strings.TrimSpace(line)); err == nil {
				c.take(u.Query())
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// ServeHTTP implements [http.Handler]. The pages repeat nothing of the request.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer") // because the URL has the code
	h.Set("X-Content-Type-Options", "nosniff")
	switch {
	case r.Host != c.at: // requests under another name (DNS rebinding)
		w.WriteHeader(http.StatusMisdirectedRequest)
	case r.URL.Path != callbackPath:
		w.WriteHeader(http.StatusNotFound)
	case r.Method != http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case !c.take(r.URL.Query()):
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("<!doctype html><title>mcpbridge</title><p>This is not the answer to a login that mcpbridge has asked for. You can close this page."))
	default:
		_, _ = w.Write([]byte("<!doctype html><title>mcpbridge</title><p>mcpbridge has the answer. You can close this page; the terminal, or the client's log, says what came of it."))
	}
}

// take accepts the response to the request. It returns false for anything else, which is
// ignored: whoever can make the browser send a request must not be able to end a login.
func (c *callback) take(q url.Values) bool {
	if !c.want.isFor(q) {
		return false
	}
	select {
	case c.answers <- c.want.judge(q):
		return true
	default:
		return false // there was one already
	}
}

// isFor reports whether a response is to the request.
func (want *expected) isFor(q url.Values) bool {
	return subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(want.state)) == 1 && len(q["state"]) == 1
}

// judge returns the code of a response to the request. It quotes nothing of the response
// before the issuer is checked.
//
// Spec: 2026-07-28, basic/authorization, Authorization Response Validation; RFC 9207, 2.4.
func (want *expected) judge(q url.Values) answer {
	iss, present := q["iss"]
	switch {
	case len(iss) > 1 || present && iss[0] != want.issuer:
		return answer{err: errors.New("the answer comes from another authorization server than the one that was asked, and was not used; if you did not expect that, somebody may have tried to steal your login")}
	case !present && want.sendsIssuer:
		return answer{err: errors.New("the answer does not say which authorization server it is from (iss), although that one says it does, and was not used")}
	case q.Has("error"):
		return answer{err: &GrantError{Code: q.Get("error"), Description: q.Get("error_description")}}
	case len(q["code"]) != 1 || q.Get("code") == "":
		return answer{err: errors.New("the answer of the authorization server has no code")}
	}
	return answer{code: q.Get("code")}
}
