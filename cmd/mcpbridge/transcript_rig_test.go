package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A transcriptRig is the program between a scripted client and a scripted server, all in
// one bubble.
type transcriptRig struct {
	t      *testing.T
	cell   cell
	rec    *bridgetest.Recorder
	server scriptedServer
	client *scriptedClient
	log    *bridgetest.Log

	stop func()   // ends the program, as a signal does
	ends []func() // let go of what is left
}

// A scriptedServer speaks one era at the wire. Its methods are called by flows.
type scriptedServer interface {
	http.Handler
	// serveConn serves a connection until it ends.
	serveConn(conn transport.Conn)
	// change tells of a resource that changed, changeList of the list of tools.
	change(uri string)
	changeList()
	// cut ends what tells of changes.
	cut()
	// awaitListener returns when something that tells of changes was opened after
	// expectListener.
	expectListener()
	awaitListener()
}

// newTranscriptRig starts the program as the flow wants it, and the server. Its config is
// what a user would write: every default is the program's own.
func newTranscriptRig(t *testing.T, f flow, c cell) *transcriptRig {
	r := &transcriptRig{t: t, cell: c, log: new(bridgetest.Log), server: newLegacyServer(t)}
	if c.server.modern {
		r.server = newModernServer(t)
	}
	text := f.config + "remember: false\nservers:\n  peer:\n"
	switch c.server.over {
	case viaHTTP:
		text += "    url: http://server.example/mcp\n"
	case viaSSE:
		text += "    url: http://server.example/sse\n    type: sse\n"
	case viaStdio:
		text += "    command: scripted\n"
	}
	if !f.detects && c.server.over != viaSSE {
		text += "    era: " + c.server.era() + "\n"
	}
	cfg, _, err := config.Load(config.Options{Path: configFile(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	r.rec = bridgetest.NewRecorder(t)
	p := process{secrets: redact.New(), upstream: r.upstream(), stderr: r.log}
	if c.client.over == viaStdio {
		r.wrap(p, cfg)
	} else {
		r.serve(p, cfg)
	}
	r.client.modern = c.client.modern
	r.client.over = c.client.over
	return r
}

// upstream is the network that has the server alone.
func (r *transcriptRig) upstream() upstream {
	l := bridgetest.Listen()
	s := &http.Server{Handler: r.rec.Handler("server", r.server, title)}
	go s.Serve(l) // ends with Close
	reach := http1.NewTransport(l.Transport())
	r.ends = append(r.ends, func() {
		reach.CloseIdleConnections()
		_ = s.Close()
	})
	return upstream{http: reach, start: r.startServer}
}

// startServer starts the server as a command.
func (r *transcriptRig) startServer(transport.CommandOptions) (transport.Conn, error) {
	near, far := transport.NewPipe()
	go r.server.serveConn(r.rec.Conn("server", "stdio", far, false)) // ends with near
	return near, nil
}

// serve starts what the command serve does, but for its listeners.
func (r *transcriptRig) serve(p process, c *config.Config) {
	d := &daemon{process: p, config: c, log: output.NewLog(p.stderr, c.Log, p.secrets)}
	var err error
	if d.gateway, err = gateway.New(*newOptions(c, false, p, d.log, nil)); err != nil {
		r.t.Fatal(err)
	}
	l := bridgetest.Listen()
	d.mcp = d.newServer(l, d.gateway, nil)
	d.gateway.Start()
	d.mcp.Start()
	r.stop = sync.OnceFunc(func() {
		if err := d.drain(r.t.Context()); err != nil && !strings.Contains(err.Error(), "cut off") {
			r.t.Errorf("drain = %v", err)
		}
	})
	reach := l.Transport()
	r.client = newScriptedClient(r, r.rec.Client("client", reach, title))
	r.ends = append(r.ends, reach.CloseIdleConnections)
}

// wrap starts what the command wrap does, but for its standard input and output.
func (r *transcriptRig) wrap(p process, c *config.Config) {
	c.Drain = wrapDrain
	g, err := gateway.New(*newOptions(c, true, p, output.NewLog(p.stderr, c.Log, p.secrets), nil))
	if err != nil {
		r.t.Fatal(err)
	}
	near, far := transport.NewPipe()
	ctx, cancel := context.WithCancel(r.t.Context())
	served := make(chan error, 1)
	g.Start()
	go func() { served <- hook.Inner(g).ServeConn(ctx, far, "peer") }() // ends with ctx
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			r.t.Errorf("ServeConn = %v", err)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain+killTime)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			r.t.Errorf("Close = %v", err)
		}
	})
	r.client = newScriptedClient(r, nil)
	r.client.dial(r.rec.Conn("client", "stdio", near, true))
}

// end ends the client, then the program if that still runs, and the server. The client
// has gone when the program is told to end: how soon it sees that others have is random.
func (r *transcriptRig) end() {
	r.client.close()
	r.pass(100 * time.Millisecond)
	r.stop()
	synctest.Wait() // the server has seen it
	for _, end := range r.ends {
		end()
	}
	if r.t.Failed() {
		r.t.Logf("the log:\n%s", r.log)
	}
}

// pass lets time pass. Flows do so between their steps, so that the times of a transcript
// tell what belongs to which.
func (r *transcriptRig) pass(d time.Duration) { time.Sleep(d) }
