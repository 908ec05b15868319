//go:build linux

package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway"
)

// What the gateway knows its callers by.
const (
	staticToken = "a-token-of-the-benchmark-s-configuration"
	publicURL   = "https://mcp.example.com/mcp/jwt"
)

// accessWays are the ways of a small call on which something is decided, each beside the
// same request, with the same headers, on which nothing is.
var accessWays = []struct {
	name, path string
	most, goal float64
}{
	{"tokens", "/mcp/tokens", 1.03, 1.02},
	{"jwt", "/mcp/jwt", 1.04, 1.03},
	{"policy by lists", "/mcp/policy", 1.02, 1.01},
}

// accessConns are the connections on which calls are made.
const accessConns = 8

// access measures what knowing the caller and deciding what it may do add to a call, in
// one process.
func (b *bench) access() error {
	i, err := newIssuer()
	if err != nil {
		return err
	}
	defer i.Close()
	took := make([]pairs, len(accessWays))
	for range processes {
		if err := b.beside(func(c *callers) error { return b.accessOf(c, i, took) }, "-issuer", i.URL); err != nil {
			return err
		}
	}
	for i, a := range accessWays {
		b.accessRow(&way{name: a.name, took: took[i]}, a.most, a.goal, "the same request with auth: none")
	}
	return b.beside(b.audited)
}

// beside has f measure a new gateway, with further arguments, beside a new upstream.
func (b *bench) beside(f func(*callers) error, args ...string) (err error) {
	c := &callers{}
	if c.upstream, err = c.hire(b, "upstream"); err == nil {
		c.gateway, err = c.hire(b, "gateway", append([]string{"-upstream", c.upstream.addr}, args...)...)
	}
	if err == nil {
		err = f(c)
	}
	if stop := c.stop(b.ctx); err == nil {
		err = stop
	}
	return err
}

// accessOf adds what the ways took in one process.
func (b *bench) accessOf(c *callers, i *issuer, took []pairs) error {
	const size, conns = 100, accessConns
	headers := map[string][]string{"/mcp/tokens": {"Authorization: Bearer " + staticToken}, "/mcp/jwt": {"Authorization: Bearer " + i.token}}
	for n, a := range accessWays {
		w := &way{name: a.name, took: took[n]}
		var err error
		if w.gateway, err = newTarget(c.gateway, c.gateway.addr, modernCall(c.gateway.addr, a.path, size, headers[a.path]...), size, conns); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		defer w.gateway.close()
		if w.proxy, err = newTarget(c.gateway, c.gateway.addr, modernCall(c.gateway.addr, "/mcp/http", size, headers[a.path]...), size, conns); err != nil {
			return err
		}
		defer w.proxy.close()
		if err := b.accessRounds(w, max(12*b.o.rounds/processes, 1)); err != nil {
			return err
		}
		took[n] = w.took
	}
	return nil
}

// accessRounds measures a way in rounds, after one that warms up.
func (b *bench) accessRounds(w *way, rounds int) error {
	const calls = 2500
	for round := -1; round < rounds; round++ {
		if err := w.round(calls, round); err != nil {
			return err
		}
	}
	return nil
}

// accessRow adds the row of a way.
func (b *bench) accessRow(w *way, most, goal float64, beside string) {
	b.table.add(row{what: "CPU of a small call with " + w.name, got: w.took.ratio(), unit: "×", most: most, goal: goal, detail: w.took.detail(beside)})
}

// processes is how often the processes are started anew: where a process has its memory makes as much as
// two hundredths, which is much beside what a line of a log costs.
const processes = 8

// audited measures what a line in the audit log adds, in processes that write one, each beside
// one that is alike and writes none.
func (b *bench) audited(c *callers) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is temporary
	w := &way{name: "audit"}
	for i := 0; i < processes && err == nil; i++ {
		err = b.auditedPair(c, w, filepath.Join(dir, fmt.Sprint("audit", i)), i%2 == 0)
	}
	if err == nil {
		b.accessRow(w, 1.05, 1.03, "the same request without a log")
	}
	return err
}

// auditedPair measures w with two new processes, of which one writes the file. first says that it is
// started before the other one.
func (b *bench) auditedPair(c *callers, w *way, file string, first bool) (err error) {
	var audited, plain *child
	for i := range 2 {
		if (i == 0) == first {
			audited, err = c.hire(b, "gateway", "-upstream", c.upstream.addr, "-audit", file)
		} else {
			plain, err = c.hire(b, "gateway", "-upstream", c.upstream.addr)
		}
		if err != nil {
			return err
		}
	}
	const size = 100
	if w.gateway, err = newTarget(audited, audited.addr, modernCall(audited.addr, "/mcp/http", size), size, accessConns); err != nil {
		return err
	}
	defer w.gateway.close()
	if w.proxy, err = newTarget(plain, plain.addr, modernCall(plain.addr, "/mcp/http", size), size, accessConns); err != nil {
		return err
	}
	defer w.proxy.close()
	return b.accessRounds(w, max(12*b.o.rounds/processes, 1))
}

// An issuer publishes a key, and has signed one token for the bench.
type issuer struct {
	*httptest.Server
	token string
}

func newIssuer() (*issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	i := &issuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL, i.URL+"/keys")
			return
		}
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"k","alg":"RS256","use":"sig","e":"AQAB","n":%q}]}`, base64.RawURLEncoding.EncodeToString(key.N.Bytes()))
	}))
	now := time.Now().Unix()
	i.token, err = sign(key, fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"bench","client_id":"bench","scope":"mcp:use","iat":%d,"exp":%d,"jti":"1"}`, i.URL, publicURL, now, now+3600))
	return i, err
}

// sign returns a JWT.
func sign(key *rsa.PrivateKey, claims string) (string, error) {
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"at+jwt","kid":"k"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), err
}

// guarded are the servers of the ways, all of them the upstream over HTTP; none without an
// issuer.
func guarded(o roleOptions) []gateway.ServerOptions {
	if o.issuer == "" {
		return nil
	}
	tokens, jwt, policy := httpServer("tokens", o.upstream, "/mcp"), httpServer("jwt", o.upstream, "/mcp"), httpServer("policy", o.upstream, "/mcp")
	tokens.Auth = &gateway.Auth{Tokens: []gateway.StaticToken{{Name: "bench", Token: staticToken}}}
	jwt.Auth = &gateway.Auth{JWT: &gateway.JWT{Issuer: o.issuer, Algorithms: []string{"RS256"}, Scopes: []string{"mcp:use"}}}
	jwt.PublicURL = publicURL
	policy.Policy = benchPolicy()
	return []gateway.ServerOptions{tokens, jwt, policy}
}

// benchPolicy allows by lists, as a configuration would: the call matches the last rule.
func benchPolicy() *gateway.Policy {
	return &gateway.Policy{Default: gateway.DefaultDeny, Rules: []gateway.Rule{
		{Deny: true, Tools: []string{"delete_*", "drop_*", "write_*"}},
		{Principals: []string{"https://id.example.com admin*"}},
		{Methods: []string{"tools/list", "prompts/list", "resources/list"}},
		{Tools: []string{"read_*", "search_*", "list_*"}, Resources: []string{"file:///pub/*"}},
		{Tools: []string{"text_*"}},
	}}
}
