package back

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Close ends the requests in flight at a server that does not answer: those of clients, and those of
// the gateway itself.
func TestCloseEndsRequests(t *testing.T) {
	for name, send := range map[string]func(context.Context, *Back) error{
		"a client's": func(ctx context.Context, b *Back) error {
			_, err := b.Serve(ctx, upRequest("tools/call", `{"name":"x"}`), &backtest.Caller{})
			return err
		},
		"its own": func(ctx context.Context, b *Back) error {
			_, err := b.request(ctx, "tools/list", nil, mcp.Profile{Scope: "scripted/1", Capabilities: []byte("{}")})
			return err
		},
	} {
		p := newUpPeer(t)
		silent := func(_ http.ResponseWriter, r *http.Request, _ wire.Message) { <-r.Context().Done() }
		p.on["tools/call"], p.on["tools/list"] = silent, silent
		b := p.back(Options{})
		ended := make(chan error, 1)
		go func() { ended <- send(t.Context(), b) }()
		bridgetest.Eventually(t, "sent", func() bool { return len(p.requests("tools/call"))+len(p.requests("tools/list")) == 1 })
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("%s: Close = %v", name, err)
		}
		select {
		case err := <-ended:
			if err == nil || errors.Is(err, mcp.ErrNotSent) || t.Context().Err() != nil {
				t.Errorf("%s ended with %v, want an error that does not say that nothing was sent", name, err)
			}
		case <-time.After(bridgetest.Patience):
			t.Fatalf("%s goes on after Close", name)
		}
	}
}

// A call that waits to be sent when the back is closed, as that of a server which turns out to be of the
// other era, was not sent: the other back may serve it. So it is with one that comes later.
func TestU02WhatWaitsToBeSentWasNotSent(t *testing.T) {
	for name, options := range map[string]func() Options{
		"for a command that starts": func() Options {
			return Options{Dial: func(ctx context.Context) (transport.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}
		},
		"for a connection": func() Options {
			never := func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
			}
			return atURL(upstream.Options{RoundTripper: http1.NewTransport(&http.Transport{DialContext: never})})
		},
		"for a credential": func() Options { return atURL(upstream.Options{Credentials: tardyCredentials{}}) },
	} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			b := newUpBack(t, options())
			call := upRequest("tools/call", `{"name":"x"}`)
			waiting := upServe(t.Context(), b, call, &backtest.Caller{})
			synctest.Wait()
			if err := b.Close(t.Context()); err != nil {
				t.Errorf("Close = %v", err)
			}
			if got := <-waiting; !errors.Is(got.err, mcp.ErrNotSent) {
				t.Errorf("Serve = %v, want that it was not sent", got.err)
			}
			if _, err := upBody(b.Serve(t.Context(), call, &backtest.Caller{})); !errors.Is(err, mcp.ErrNotSent) {
				t.Errorf("Serve after Close = %v, want that it was not sent", err)
			}
		})
	}
}

// atURL returns the options of a back of a URL.
func atURL(o upstream.Options) Options {
	o.URL = "http://127.0.0.1/mcp"
	return Options{Options: o}
}

// tardyCredentials never come.
type tardyCredentials struct{}

func (tardyCredentials) Authorization(ctx context.Context, _ upstream.Behalf) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func (tardyCredentials) Renew(context.Context, upstream.CredentialRefusal) (string, error) {
	return "", nil
}

// A call whose client is being asked has been run in part, though what the client answers is not sent
// any more.
func TestU02WhatWasRunInPartWasSent(t *testing.T) {
	b, peers := upLines(t, Options{})
	asked := func(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
		return answers(willing)(ctx, qs)
	}
	done := upServe(t.Context(), b, askedCall(`{"name":"t"}`), &backtest.Caller{Ask: asked})
	p := <-peers
	p.Result(p.Want("tools/call").ID, `{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}`)
	if got := <-done; !errors.Is(got.err, mcp.ErrShutdown) || errors.Is(got.err, mcp.ErrNotSent) {
		t.Errorf("Serve = %s, %v, want that the back was closed, and not that nothing was sent", got.body, got.err)
	}
}
