package source

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// keepAlive is how often the owner has to write to a stream.
	keepAlive = 5 * time.Second
	// silentAfter is when a stream counts as broken on which nothing comes.
	silentAfter = 12 * time.Second
	// metaScope is the member of _meta in a request that names the scope, so that the
	// owner can refuse one that it takes for another.
	metaScope = "dev.mcpbridge/scope"

	scheme = "Principal "
)

var errSilent = errors.New("the replica has not sent anything for too long")

// ownMeta removes what metaOf adds.
var ownMeta = []wire.Edit{{Name: metaScope}, {Name: spec.MetaNumbers}}

// metaOf returns what the _meta of a profile's requests has.
func metaOf(p mcp.Profile) []wire.Edit {
	return []wire.Edit{{Name: metaScope, Value: wire.Quote(Name(p.Scope))}, {Name: spec.MetaNumbers, Value: []byte("true")}}
}

// onBehalf names the principal of each request to the RoundTripper. The header does not leave
// the process.
type onBehalf struct{}

var _ upstream.Credentials = onBehalf{}

func (onBehalf) Authorization(_ context.Context, b upstream.Behalf) (string, error) {
	return scheme + base64.StdEncoding.EncodeToString([]byte(b.Principal)), nil
}

func (onBehalf) Renew(context.Context, upstream.CredentialRefusal) (string, error) { return "", nil }

type senderKey struct{}

// senderOf returns on whose behalf a request is sent.
func senderOf(r *http.Request) mcp.Sender {
	s, _ := r.Context().Value(senderKey{}).(mcp.Sender)
	return s
}

// readSender returns the sender that onBehalf names.
func readSender(h http.Header) mcp.Sender {
	name, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h.Get("Authorization"), scheme))
	p := mcp.Principal(name)
	if err != nil || p == "" || p == mcp.Anonymous {
		return mcp.Sender{Share: mcp.Share{Principal: mcp.Anonymous}}
	}
	return mcp.Sender{Share: mcp.Share{Principal: p}, Identity: &mcp.Identity{Principal: p}}
}

// roundTripper sends the requests of a back that watches at another replica.
func (r *reach) roundTripper(to replicas.Replica) http.RoundTripper {
	return &tripper{r, to, r.g.opts.RoundTripper(to, senderOf)}
}

type tripper struct {
	reach *reach
	to    replicas.Replica
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	sender := readSender(r.Header)
	on, _ := ctx.Value(errandKey{}).(*errand)
	if on != nil {
		sender = on.sender
	}
	out := r.Clone(context.WithValue(ctx, senderKey{}, sender))
	out.Header.Del("Authorization")
	begin := time.Now()
	resp, err := t.next.RoundTrip(out)
	if on != nil {
		on.failed = err
	}
	if err != nil {
		if r.Context().Err() == nil {
			t.reach.failed(t.to, begin)
		}
		cancel(nil)
		return nil, err
	}
	t.reach.reached(t.to)
	resp.Body = t.heed(resp.Body, cancel)
	return resp, nil
}

// heed has a body end that is silent for too long.
func (t *tripper) heed(body io.ReadCloser, cancel context.CancelCauseFunc) io.ReadCloser {
	b := &heededBody{ReadCloser: body, cancel: cancel}
	b.late = time.AfterFunc(silentAfter, func() {
		t.reach.failed(t.to, time.Now().Add(-silentAfter))
		cancel(errSilent)
	})
	return b
}

type heededBody struct {
	io.ReadCloser
	late   *time.Timer
	cancel context.CancelCauseFunc
}

// Read implements [io.Reader].
func (b *heededBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.late.Stop() && err == nil {
		b.late.Reset(silentAfter)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *heededBody) Close() error {
	b.late.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
