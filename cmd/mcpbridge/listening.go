package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/options"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/httpserver"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin"
	"github.com/mcpbridge/mcpbridge/internal/origin"
)

// openMCP takes the address for MCP clients.
func (d *daemon) openMCP(ctx context.Context) error {
	h := d.parting(d.gateway)
	var secure *tls.Config
	if f := d.config.TLS.Files(); f.Cert != "" {
		store, err := certs.Open(f, d.log)
		if err != nil {
			return fmt.Errorf("tls: %w", err)
		}
		h, secure = store.Guard(h), store.Server(d.config.TLS.ClientAuth == "require")
	}
	l, err := gateway.Listen(ctx, d.config.Listen, d.config.WriteTimeout)
	if err != nil {
		return fmt.Errorf("%w; choose another address with --listen", err)
	}
	d.mcp = d.newServer(l, h, secure)
	return nil
}

// watchCertificates has the metrics say when the certificates of c expire.
func (d *daemon) watchCertificates(c *config.Config) {
	hook.Inner(d.gateway).Metrics().WatchCertificates(options.Certificates(d.started, c))
}

func (d *daemon) newServer(l net.Listener, h http.Handler, secure *tls.Config) *httpserver.Server {
	metrics := hook.Inner(d.gateway).Metrics()
	return httpserver.New(l, httpserver.Options{
		Handler: h, Logger: d.log, TLS: secure, MaxNew: d.config.Limits.NewConnections,
		Reached: func(l *limits.Limit) { metrics.Limit("", l.Key) },
	})
}

// openAdmin takes the admin address, or its socket.
func (d *daemon) openAdmin(ctx context.Context) error {
	h, err := admin.NewHandler(d.adminOptions())
	if err != nil {
		return err
	}
	if err = d.listenAdmin(ctx, h); err == nil {
		d.wants.require = h.Require
		d.secureAdmin(d.config)
	}
	return err
}

// listenAdmin takes the address, or the socket, for h.
func (d *daemon) listenAdmin(ctx context.Context, h http.Handler) error {
	if path := d.config.AdminSocket(); path != "" {
		l, err := httpserver.ListenSocket(ctx, path)
		if err != nil {
			return err
		}
		d.admin = d.newServer(l, h, nil) // a web page can't reach it
		return nil
	}
	secure, err := d.adminTLS()
	if err != nil {
		return err
	}
	l, err := d.takeAdmin(ctx)
	if err != nil {
		return err
	}
	d.admin = d.newServer(l, origin.Hosts{Machine: machineName(), Allowed: d.config.AllowedHosts}.Guard(h), secure)
	return nil
}

// adminTLS returns nil for an admin address without TLS. Its clients show a token and no
// certificate.
func (d *daemon) adminTLS() (*tls.Config, error) {
	if !d.config.AdminTLS() {
		return nil, nil
	}
	f := d.config.TLS.Files()
	f.CA = ""
	store, err := certs.Open(f, d.log)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return store.Server(false), nil
}

// takeAdmin takes the admin address. One that nobody chose may be taken, by another
// mcpbridge as a rule: then it is another port.
func (d *daemon) takeAdmin(ctx context.Context) (net.Listener, error) {
	l, err := gateway.Listen(ctx, d.config.Admin, d.config.WriteTimeout)
	if err == nil || d.config.AdminChosen {
		return l, err
	}
	l, other := gateway.Listen(ctx, "127.0.0.1:0", d.config.WriteTimeout)
	if other != nil {
		return nil, err
	}
	d.log.Warn("metrics and health are on another port: the usual one is in use", "wanted", d.config.Admin, "addr", l.Addr().String())
	return l, nil
}
