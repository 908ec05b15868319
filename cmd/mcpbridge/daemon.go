package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/options"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/reload"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/system"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/guard"
	"github.com/mcpbridge/mcpbridge/internal/httpserver"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
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
	observe *observing
	gateway *gateway.Gateway
	mcp     *httpserver.Server
	admin   *httpserver.Server // nil if off
	wants   adminWants
	notify  *system.Notifier // nil if no service manager is to be told
	reloading
	draining atomic.Bool // the process is about to end
	delayed  atomic.Bool // and goes on serving for drain_delay
	joined   atomic.Bool // other replicas have heard of this one
}

// run serves until ctx ends, and drains. Nothing of it is left when it returns.
func (d *daemon) run(ctx context.Context) error {
	system.BoundMemory(d.config, system.ServeMemory, d.environ)
	defer runtime.KeepAlive(system.Ballast(d.config.Limits.Memory, d.environ))
	defer system.ReleaseMemory(d.environ)()
	d.guard = guard.New(d.log)
	defer d.guard.Close() // after all that it minds
	d.notify = system.NewNotifier(d.environ, d.log)
	defer d.notify.Close()
	if err := d.open(ctx); err != nil {
		return err
	}
	d.gateway.Start()
	if d.admin != nil {
		d.admin.Start()
	}
	uncatch := d.catchHangups() // before others are told that it serves
	err := d.join(ctx)
	if err == nil {
		err = d.announce()
	}
	if err == nil {
		err = showToken(d.stderr, d.token)
	}
	if err == nil {
		d.notify.Ready("serving " + strconv.Itoa(len(d.gateway.Snapshot().Servers)) + " servers")
		d.notify.Watch(func() { d.gateway.Snapshot() })
		d.audited(audit.Started(release.Version()))
		stop := d.showStarting(ctx)
		quit := d.mayReload()
		err = d.wait(ctx)
		quit()
		stop()
	}
	uncatch()
	d.audited(audit.Stopped(release.Version()))
	d.leave(ctx)
	return errors.Join(err, d.drain(ctx))
}

// join begins to serve clients, once other replicas have heard of this one.
func (d *daemon) join(ctx context.Context) error {
	err := d.gateway.Join(ctx)
	if ctx.Err() != nil {
		err = nil // that the process ends is no mistake
	}
	d.joined.Store(err == nil)
	d.mcp.Start()
	return err
}

// open builds everything and takes the addresses. It leaves nothing behind if
// it fails.
func (d *daemon) open(ctx context.Context) (err error) {
	if d.observe, err = d.openObserving(ctx, d.config.Log, d.log); err != nil {
		return err
	}
	d.observers, d.accessLog = d.observe.all, d.observe.access != nil
	d.carried = &reload.Carried{}
	if d.config.Admin != "" && d.config.AdminBodies {
		d.lines = live.NewLines(d.secrets)
	}
	o := newOptions(d.config, false, d.process, d.log, d.guard)
	if err = options.AddReplicaTLS(o.Replicas, d.config.Replicas, d.log); err != nil {
		return err
	}
	if d.gateway, err = gateway.New(*o); err != nil {
		return err
	}
	d.observe.count(d.gateway)
	d.openReloading()
	d.watchCertificates(d.config)
	defer func() {
		if err != nil {
			err = errors.Join(err, d.gateway.Shutdown(ctx))
			d.observe.close(ctx)
		}
	}()
	if err = d.openMCP(ctx); err != nil || d.config.Admin == "" {
		return err
	}
	if err = d.openAdmin(ctx); err != nil {
		d.mcp.Cancel()
		return fmt.Errorf("admin: %w; choose another address with --admin, or --admin off", err)
	}
	return nil
}

// showStarting shows a person who is still starting, until stop is called.
func (d *daemon) showStarting(ctx context.Context) (stop func()) {
	if d.screen == nil || d.asJSON || client.Dumb(d.environ) {
		return func() {}
	}
	servers := func() []gateway.ServerSnapshot { return d.gateway.Snapshot().Servers }
	return client.WatchStart(ctx, d.screen, servers).Stop
}

// wait returns nil when ctx ends, or the reason why an address is no longer
// served.
func (d *daemon) wait(ctx context.Context) error {
	var adminDone <-chan struct{} // nil: never
	if d.admin != nil {
		adminDone = d.admin.Done()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-d.mcp.Done():
		return d.mcp.Err()
	case <-adminDone:
		return d.admin.Err()
	}
}

// leave says that the process is about to end. If it was told to, it goes on serving for as
// long as those who send it requests may take to notice.
func (d *daemon) leave(ctx context.Context) {
	d.draining.Store(true)
	delay := d.config.DrainDelay
	if ctx.Err() == nil {
		delay = 0 // an address is no longer served
	}
	d.notify.Stopping("draining", delay+d.config.Drain+lastTime)
	if delay == 0 {
		return
	}
	d.delayed.Store(true)
	d.gateway.Drain()
	d.log.Info("about to drain: not ready, and still serving", "delay", delay)
	select {
	case <-time.After(delay):
	case <-d.mcp.Done():
	}
}

// parting has clients that keep connections open ask for new ones once the process is
// about to end, so that what is in front of it can send them elsewhere.
func (d *daemon) parting(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.delayed.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
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
	calls, cancel := context.WithTimeout(ctx, d.config.Drain-options.Closing(d.config.Drain))
	defer cancel()
	d.gateway.Drain()
	d.gateway.EndStreams()
	err := d.mcp.Shutdown(calls)
	if cerr := d.gateway.EndConnections(calls); cerr != nil {
		err = errors.Join(err, fmt.Errorf("WebSockets or listen streams were still in use at the end of the drain and were cut off: %w", cerr))
	}

	servers, cancel := context.WithTimeout(ctx, options.Closing(d.config.Drain)+killTime)
	defer cancel()
	if cerr := d.gateway.Shutdown(servers); cerr != nil {
		err = errors.Join(err, fmt.Errorf("ending the servers' sessions: %w", cerr))
	}
	if d.admin != nil {
		// Scrapes are short; one that is not is cut off.
		_ = d.admin.Shutdown(servers)
		d.wants.forget()
	}
	d.observe.close(servers)
	d.log.Info("stopped")
	return err
}

// lastTime is what a service manager gives the process beyond its drain: commands are
// killed, and the last spans are exported.
const lastTime = 10 * time.Second

// killTime is what killing commands takes at most once patience has ended.
const killTime = 2 * time.Second

// states shows a gateway to the admin address.
type states struct {
	g        *gateway.Gateway
	draining *atomic.Bool
	joined   *atomic.Bool
	settled  *atomic.Bool
}

// Snapshot implements [admin.Source].
func (s states) Snapshot() admin.Snapshot {
	from := s.g.Snapshot()
	out := admin.Snapshot{Draining: from.Draining || s.draining.Load(), Settled: s.settled.Load(), Joining: from.Replicas != nil && !(s.joined.Load() && from.Replicas.Ready), Servers: []admin.Server{}, Replicas: replicasOf(from.Replicas)}
	for _, server := range from.Servers {
		state := admin.Up
		switch server.State {
		case gateway.StateStarting:
			state = admin.Untried
		case gateway.StateDown:
			state = admin.Down
		case gateway.StateIdle:
			state = admin.Idle
		}
		out.Servers = append(out.Servers, admin.Server{Name: server.Name, State: state, Reason: server.Error})
	}
	return out
}

// replicasOf returns nil for one replica.
func replicasOf(r *gateway.ReplicaSnapshot) *admin.Replicas {
	if r == nil {
		return nil
	}
	engine := "ok"
	if !r.Away.IsZero() {
		engine = "away since " + r.Away.UTC().Format(time.RFC3339)
	}
	return &admin.Replicas{Self: r.Self, Members: len(r.Members), Engine: engine, Degraded: r.Degraded}
}
