package main

import (
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/reload"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/system"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
)

// readTime bounds the time in which all files of a configuration are read.
const readTime = time.Minute

// A reloading is what a daemon needs to read its configuration again.
type reloading struct {
	source   config.Options
	watches  bool             // the files
	seen     reload.Contents  // of the files, at the start
	level    slog.LevelVar    // of the log
	started  *config.Config   // what it was when the process began
	reloader *reload.Reloader // nil if there is no file
	files    reload.Files     // that are watched
	inUse    *reload.Carried  // owned by who makes an attempt; that of the process is of the start
	hup      chan struct{}    // gets one for a SIGHUP that asks for a reload
	settled  atomic.Bool      // all servers were tried before the first reload that succeeded
}

// openReloading makes what reads the configuration again; nothing if there is no file.
func (d *daemon) openReloading() {
	if d.started, d.inUse = d.config, d.carried; d.source.Path == "" {
		return
	}
	d.files.Use(d.started.Files())
	d.reloader = reload.New(d.reload, d.log, d.reloaded)
}

// reloaded counts an attempt, and writes it to the audit log.
func (d *daemon) reloaded(o reload.Outcome) {
	hook.Inner(d.gateway).Metrics().Reloaded(o.OK)
	d.audited(o.Record())
}

// audited writes a line into the audit log, if there is one.
func (d *daemon) audited(r *audit.Record) { hook.Inner(d.gateway).Audit().Write(r) }

// lastReload returns how it went last, as JSON is made of it; nil if there was no attempt.
func (d *daemon) lastReload() any {
	return d.reloader.LastJSON()
}

// reloadHandler serves POST /reload; it is nil if there is no file.
func (d *daemon) reloadHandler() http.Handler {
	if d.reloader == nil {
		return nil // and no typed nil in the interface
	}
	return d.reloader
}

// catchHangups has SIGHUP ask for a reload, until stop is called. Those that come before
// mayReload wait for it.
func (d *daemon) catchHangups() (stop func()) {
	if d.reloader == nil {
		return func() {}
	}
	d.hup = make(chan struct{}, 1)
	return d.hangups.OnReload(func() {
		select {
		case d.hup <- struct{}{}:
		default: // one waits already
		}
	})
}

// mayReload has the configuration reloaded by SIGHUP, and when its files change, until quit
// is called. A reload that still reads is given up then, one that has read is waited for.
func (d *daemon) mayReload() (quit func()) {
	if d.reloader == nil {
		return func() {}
	}
	ending, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with quit
		defer close(done)
		for {
			select {
			case <-d.hup:
				d.reloader.Now("SIGHUP")
			case <-ending:
				return
			}
		}
	}()
	w := d.watchFiles()
	return func() {
		d.reloader.Close() // before others who wait for an attempt
		w.Close()
		close(ending)
		<-done
	}
}

// watchFiles has the configuration reloaded when its files change.
func (d *daemon) watchFiles() *reload.Watcher {
	if !d.watches {
		return nil
	}
	return reload.Watch(d.seen, d.files.All, func() { d.reloader.Now("its files have changed") }, d.log)
}

// reload reads the configuration again, and serves by it.
func (d *daemon) reload() reload.Outcome {
	d.notify.Reloading()
	o, err := d.reloadConfig()
	if err != nil {
		d.files.Failed(err)
		o = reload.Failed(err)
		o.Error = d.secrets.String(o.Error)
		d.notify.Ready("serving; the changed configuration can't be used")
		return o
	}
	d.notify.Ready("serving " + strconv.Itoa(len(d.gateway.Snapshot().Servers)) + " servers")
	return o
}

// A reading is what was read for a reload.
type reading struct {
	config  *config.Config
	options *gateway.Options
}

// readConfig reads the configuration, and the certificates that it names. It may go on after it was
// given up: what it makes is in p.
func (d *daemon) readConfig(p process) (reading, error) {
	source := d.source
	source.MayMakeToken, source.Stop = d.token != "", d.reloader.Closing()
	c, warnings, err := config.Load(source)
	if err != nil {
		return reading{}, err
	}
	for _, w := range warnings {
		d.log.Warn("configuration", "warning", w.String())
	}
	if c.MakeToken {
		c.Auth = clientToken(d.token)
	}
	d.learn(c)
	return reading{c, newOptions(c, false, p, d.log, d.guard)}, nil
}

func (d *daemon) reloadConfig() (o reload.Outcome, err error) {
	p := d.process
	p.carried = d.inUse.Next()
	read, err := value.Within(d.reloader.Closing(), readTime, func() (reading, error) { return d.readConfig(p) })
	if err != nil {
		return o, err
	}
	c := read.config
	if !slices.ContainsFunc(d.gateway.Snapshot().Servers, func(s gateway.ServerSnapshot) bool { return s.State == gateway.StateStarting }) {
		d.settled.Store(true)
	}
	r, err := d.gateway.Reload(*read.options)
	if err != nil {
		d.files.Refused(c.Files())
		return o, err
	}
	was := d.config
	d.inUse = p.carried
	d.use(c)
	keys := reload.Changed(was, c) // both with the memory that there is
	return reload.Outcome{OK: true, Keys: keys, Added: r.Added, Changed: r.Changed, Removed: r.Removed, Renewed: r.Renewed, NeedsRestart: reload.NeedsRestart(d.started, c)}, nil
}

// use makes c what the process goes by.
func (d *daemon) use(c *config.Config) {
	d.config = c // who reads it later waits for the reloader first
	d.secureAdmin(c)
	d.watchCertificates(c)
	d.files.Use(c.Files())
	d.lines.Keep(func(name string) bool {
		return slices.ContainsFunc(c.Servers, func(s config.Server) bool { return s.Name == name })
	})
	d.level.Set(output.LogLevel(c.Log.Level))
	system.BoundMemory(c, system.ServeMemory, d.environ)
}
