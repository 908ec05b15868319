package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/memory"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/admin"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/gateway"
	"github.com/mcpbridge/mcpbridge/internal/guard"
)

const (
	// headerTimeout bounds a request's headers, idleTimeout a connection
	// without a request. Neither touches a response in progress.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxHeader bounds a request's headers, in bytes.
	maxHeader = 64 << 10
)

// A daemon is one run of serve.
type daemon struct {
	process
	config *config.Config
	log    *slog.Logger
	asJSON bool
	token  string         // that was made for this run; empty for none
	screen *output.Screen // nil if standard error is no terminal

	guard   *guard.Guard
	gateway *mcpbridge.Gateway
	mcp     *httpServer
	admin   *httpServer // nil if off
}

// run serves until ctx ends, and drains. Nothing of it is left when it returns.
func (d *daemon) run(ctx context.Context) error {
	memory.Bound(d.config, memory.ServeMost, d.environ)
	defer runtime.KeepAlive(memory.Ballast(d.config.Limits.Memory, d.environ))
	defer memory.Release(d.environ)()
	d.guard = guard.New(d.log)
	defer d.guard.Close() // after all that it minds
	if err := d.open(ctx); err != nil {
		return err
	}
	d.gateway.Start()
	d.mcp.start()
	if d.admin != nil {
		d.admin.start()
	}
	err := d.announce()
	if err == nil {
		err = showToken(d.stderr, d.token)
	}
	if err == nil {
		stop := d.showStarting(ctx)
		err = d.wait(ctx)
		stop()
	}
	return errors.Join(err, d.drain(ctx))
}

// open builds everything and takes the addresses. It leaves nothing behind if
// it fails.
func (d *daemon) open(ctx context.Context) (err error) {
	if d.gateway, err = mcpbridge.New(*newOptions(d.config, false, d.process, d.log, d.guard)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.gateway.Shutdown(ctx))
		}
	}()
	l, err := mcpbridge.Listen(ctx, d.config.Listen, d.config.WriteTimeout)
	if err != nil {
		return fmt.Errorf("%w; choose another address with --listen", err)
	}
	d.mcp = newHTTPServer(l, d.gateway, d.log)
	if d.config.Admin == "" {
		return nil
	}
	h, err := admin.NewHandler(admin.Options{Source: states{d.gateway}, Metrics: d.gateway.MetricsHandler()})
	if err == nil {
		l, err = d.listenAdmin(ctx)
	}
	if err != nil {
		_ = d.mcp.listener.Close()
		return fmt.Errorf("admin: %w; choose another address with --admin, or --admin off", err)
	}
	d.admin = newHTTPServer(l, guarded(h, gateway.Hosts{Machine: machineName(), Allowed: d.config.AllowedHosts}), d.log)
	return nil
}

// listenAdmin takes the admin address. One that nobody chose may be taken, by another
// mcpbridge as a rule: then it is another port.
func (d *daemon) listenAdmin(ctx context.Context) (net.Listener, error) {
	l, err := mcpbridge.Listen(ctx, d.config.Admin, d.config.WriteTimeout)
	if err == nil || d.config.AdminChosen {
		return l, err
	}
	l, other := mcpbridge.Listen(ctx, "127.0.0.1:0", d.config.WriteTimeout)
	if other != nil {
		return nil, err
	}
	d.log.Warn("metrics and health are on another port: the usual one is in use", "wanted", d.config.Admin, "addr", l.Addr().String())
	return l, nil
}

// guarded keeps web pages off whose names were rebound to this machine.
func guarded(h http.Handler, hosts gateway.Hosts) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.Allow(r) {
			http.Error(w, gateway.HostRefusal(r), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// showStarting shows a person who is still starting, until stop is called.
func (d *daemon) showStarting(ctx context.Context) (stop func()) {
	if d.screen == nil || d.asJSON || slices.Contains(d.environ, "TERM=dumb") {
		return func() {}
	}
	servers := func() []mcpbridge.ServerSnapshot { return d.gateway.Snapshot().Servers }
	return watchStart(ctx, d.screen, servers).stop
}

// wait returns nil when ctx ends, or the reason why an address is no longer
// served.
func (d *daemon) wait(ctx context.Context) error {
	var adminDone chan struct{} // nil: never
	if d.admin != nil {
		adminDone = d.admin.done
	}
	select {
	case <-ctx.Done():
		return nil
	case <-d.mcp.done:
		return d.mcp.err
	case <-adminDone:
		return d.admin.err
	}
}

// drain ends listen streams with their result, waits for calls in flight, over HTTP and
// WebSockets, ends the servers' sessions and commands, and the admin address last: readiness
// says meanwhile that the process is draining.
//
// Calls that do not end leave the servers their part of the time: a command
// that is not waited for would outlive the process.
func (d *daemon) drain(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	d.log.Info("draining", "bound", d.config.Drain)
	calls, cancel := context.WithTimeout(ctx, d.config.Drain-closing(d.config.Drain))
	defer cancel()
	d.gateway.EndStreams()
	err := d.mcp.shutdown(calls)
	if cerr := d.gateway.EndConnections(calls); cerr != nil {
		err = errors.Join(err, fmt.Errorf("WebSockets or listen streams were still in use at the end of the drain and were cut off: %w", cerr))
	}

	servers, cancel := context.WithTimeout(ctx, closing(d.config.Drain)+killTime)
	defer cancel()
	if cerr := d.gateway.Shutdown(servers); cerr != nil {
		err = errors.Join(err, fmt.Errorf("ending the servers' sessions: %w", cerr))
	}
	if d.admin != nil {
		// Scrapes are short; one that is not is cut off.
		_ = d.admin.shutdown(servers)
	}
	d.log.Info("stopped")
	return err
}

// killTime is what killing commands takes at most once patience has ended.
const killTime = 2 * time.Second

// closing is the part of the drain that is kept for ending servers.
func closing(drain time.Duration) time.Duration { return min(drain/2, 6*time.Second) }

// closeGrace is how long a command may take over each of the two polite steps
// of its end, so that both fit into closing.
func closeGrace(drain time.Duration) time.Duration {
	return max(closing(drain)/3, 10*time.Millisecond)
}

// An httpServer is a net/http server on a listener, with the goroutine that
// serves.
type httpServer struct {
	*http.Server
	listener net.Listener
	done     chan struct{} // closed when Serve has returned
	err      error         // why; read only after done is closed

	// mu guards the fields below. It is held for map work only.
	mu     sync.Mutex
	silent map[net.Conn]struct{} // the connections that have sent nothing yet
	hungUp bool                  // they were closed, and so are those to come
}

func newHTTPServer(l net.Listener, h http.Handler, log *slog.Logger) *httpServer {
	s := &httpServer{
		listener: l,
		done:     make(chan struct{}),
		silent:   make(map[net.Conn]struct{}),
		Server: &http.Server{
			Handler:           h,
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			// Broken handshakes and the like: a client's business, not ours.
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
	s.ConnState = s.note
	return s
}

// note keeps the connections that have sent nothing yet. Once they are hung up on,
// there are none any more.
func (s *httpServer) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	late := s.hungUp && state == http.StateNew
	if state == http.StateNew {
		s.silent[c] = struct{}{}
	} else {
		delete(s.silent, c)
	}
	s.mu.Unlock()
	if late {
		_ = c.Close()
	}
}

// hangUp closes the connections that have sent nothing yet. Clients open some in
// reserve, and Shutdown would wait five seconds for them.
func (s *httpServer) hangUp() {
	s.mu.Lock()
	s.hungUp = true
	silent := slices.Collect(maps.Keys(s.silent))
	s.mu.Unlock()
	for _, c := range silent {
		_ = c.Close()
	}
}

// start serves in the background; shutdown ends it.
func (s *httpServer) start() { go s.serve() }

func (s *httpServer) serve() {
	defer close(s.done)
	if err := s.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.err = fmt.Errorf("serving %s: %w", s.listener.Addr(), err)
	}
}

// shutdown waits until no request is in flight, or cuts them off when ctx ends.
func (s *httpServer) shutdown(ctx context.Context) error {
	s.hangUp()
	err := s.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("requests were still in flight at the end of the drain and were cut off: %w", err)
		err = errors.Join(err, s.Close())
	}
	<-s.done
	return err
}

// states shows a gateway to the admin address.
type states struct{ g *mcpbridge.Gateway }

// Snapshot implements [admin.Source].
func (s states) Snapshot() admin.Snapshot {
	from := s.g.Snapshot()
	out := admin.Snapshot{Draining: from.Draining, Servers: []admin.Server{}}
	for _, server := range from.Servers {
		state := admin.Up
		switch server.State {
		case mcpbridge.StateStarting:
			state = admin.Untried
		case mcpbridge.StateDown:
			state = admin.Down
		}
		out.Servers = append(out.Servers, admin.Server{Name: server.Name, State: state, Reason: server.Error})
	}
	return out
}
