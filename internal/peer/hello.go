package peer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// maxHello bounds what a replica says of itself, in bytes.
const maxHello = 4 << 10

// A greeting is what a replica says of itself.
type greeting struct {
	Instance string           `json:"instance"`
	Version  string           `json:"version"`
	Revision int              `json:"revision,omitempty"`
	Draining bool             `json:"draining,omitempty"`
	Ready    bool             `json:"ready,omitempty"`
	Servers  replicas.Servers `json:"servers,omitempty"`
	TLS      bool             `json:"tls,omitempty"`
}

// ServeHello answers a hello, whose envelope was opened. The answer is signed, together with
// the nonce: whoever has no key can't answer.
func (g *Group) ServeHello(w http.ResponseWriter, r *http.Request, e *Envelope) {
	self := g.Self()
	text, err := json.Marshal(greeting{self.Instance, self.Version, self.Revision, self.Draining, self.Ready, self.Servers, self.TLS})
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	date(w)
	w.Header().Set(proofHeader, proofOf(g.keys.Load().keys[0], e, text))
	_, _ = w.Write(text) // the other replica has gone if it fails
}

const proofHeader = "Mcpbridge-Proof"

// proofOf returns the signature of an answer to a hello.
func proofOf(k *key, e *Envelope, text []byte) string {
	sum := k.code(e.text()+macPart+string(text), &http.Request{Method: "hello", URL: new(url.URL)})
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Hello asks who is at an address. It does not heed what is known of the address.
func (g *Group) Hello(ctx context.Context, addr string) (replicas.Replica, error) {
	return g.ask(ctx, newGate(g, replicas.Replica{Addr: addr}))
}

// ask asks the replica behind a gate who it is.
func (g *Group) ask(ctx context.Context, t *gate) (replicas.Replica, error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL(t.to, HelloPath), nil)
	if err != nil {
		return replicas.Replica{}, err
	}
	e := new(Envelope)
	resp, err := g.inEither(t.to, r, func(r *http.Request) (*http.Response, error) {
		g.seal(e, t.to, r)
		return g.sendPast(pass{t, true}, r)
	})
	if err != nil {
		return replicas.Replica{}, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is of no use
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxHello))
	if err != nil {
		return replicas.Replica{}, err
	}
	return g.greeted(t.to.Addr, e, resp, text)
}

// greeted reads the answer to a hello.
func (g *Group) greeted(addr string, e *Envelope, resp *http.Response, text []byte) (replicas.Replica, error) {
	said, ours := g.proves(&answer{envelope: e, status: resp.StatusCode, header: resp.Header, text: text})
	if !ours {
		return replicas.Replica{}, &RefusingError{"no replica with the same keys answers at " + addr + "; compare replicas.keys"}
	}
	return replicas.Replica{Instance: said.Instance, Addr: addr, Version: said.Version, Revision: said.Revision, Draining: said.Draining, Ready: said.Ready, Servers: said.Servers.Bounded(), TLS: said.TLS}, nil
}

// beginHelloLocked asks the replica in the background whether it lives.
func (t *gate) beginHelloLocked() chan struct{} {
	done := make(chan struct{})
	t.hello, t.asked = done, time.Now()
	t.g.running.Go(func() { // ends within Options.DialTimeout
		_, err := t.g.ask(t.g.live, t)
		if t.g.live.Err() == nil && !isVerdict(err) {
			t.note(err, true)
		}
		t.mu.Lock()
		t.hello = nil
		t.mu.Unlock()
		close(done)
	})
	return done
}

// isVerdict reports whether err is what a gate says, which has noted the cause.
func isVerdict(err error) bool {
	gone, silent := (*GoneError)(nil), (*SilentError)(nil)
	return errors.As(err, &gone) || errors.As(err, &silent)
}

// answers reports whether the replica has answered a hello since a time. It asks if that is
// not known.
func (t *gate) answers(ctx context.Context, since time.Time) bool {
	t.mu.Lock()
	done := t.hello
	if done == nil && time.Since(t.asked) >= dialEvery {
		done = t.beginHelloLocked()
	}
	t.mu.Unlock()
	if done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closedLocked() == nil && !t.own && t.asked.After(since)
}

// isHindered reports whether this machine could not ask the replica.
func (t *gate) isHindered() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own
}

// isInstance reports whether a text can be the instance of a replica.
func isInstance(s string) bool {
	return len(s) == instanceLen && strings.IndexFunc(s, func(c rune) bool { return (c < 'A' || c > 'Z') && (c < '2' || c > '7') }) < 0
}
