package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/overview"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
)

// beginTime bounds the time until it is known where a person can log in.
const beginTime = 30 * time.Second

// errAnother ends a login in whose place another one is begun.
var errAnother = errors.New("another login was begun")

// loggingIn are the logins that people at the admin page have begun: one of each server.
type loggingIn struct {
	running sync.WaitGroup

	// mu guards the fields below.
	mu    sync.Mutex
	of    map[string]context.CancelCauseFunc
	ended bool
}

// begin returns a context for a login at a server, in the place of one that was begun before. end is
// called when it is over. It reports false after close.
func (l *loggingIn) begin(server string) (ctx context.Context, end func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, nil, false
	}
	if before := l.of[server]; before != nil {
		before(errAnother)
	}
	ctx, cancel := context.WithCancelCause(context.Background()) // a person takes longer than the request
	if l.of == nil {
		l.of = make(map[string]context.CancelCauseFunc)
	}
	l.of[server] = cancel
	l.running.Add(1)
	return ctx, func() {
		cancel(nil)
		l.running.Done()
	}, true
}

// close ends all, and waits for them.
func (l *loggingIn) close() {
	l.mu.Lock()
	l.ended = true
	for _, cancel := range l.of {
		cancel(errEnded)
	}
	l.mu.Unlock()
	l.running.Wait()
}

// A door is what logs in to a server with a stored login.
type door struct {
	flow *login.Flow
	log  *audit.Log
	tell func(text string, args ...any)
}

// doorOf returns the door of a server.
func (g *Gateway) doorOf(server string) (*door, error) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	p := g.current.find(server)
	if g.ended || p == nil || p.login == nil {
		return nil, fmt.Errorf("server %q has no stored login: its upstream_auth has no oauth, or one of each principal", server)
	}
	o := g.current.opts
	return &door{newBuild(&o, g.metrics).of(g.current.options(server)).loginFlow(), g.current.common.audit, o.Logger.With("upstream", server).Info}, nil
}

// LogIn implements [cmdhook.Inner]: it returns the URL at which a person can log in to a server,
// with a browser of this machine, and stores the login.
func (g inner) LogIn(ctx context.Context, server string) (string, error) {
	d, err := g.outer.doorOf(server)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	_, challenge, err := d.flow.Ask(ctx)
	if err != nil {
		return "", fmt.Errorf("asking server %q where to log in: %w", server, err)
	}
	during, end, ok := g.outer.logging.begin(server)
	if !ok {
		return "", errEnded
	}
	at, failed := make(chan string, 1), make(chan error, 1)
	d.flow.Browse = func(url string) error {
		at <- url // it is called once
		return nil
	}
	go func() { // ends with the login, or with Shutdown
		defer end()
		failed <- d.run(during, challenge, server) // capacity 1
	}()
	select {
	case url := <-at:
		return url, nil
	case err := <-failed:
		select {
		case url := <-at: // somebody was quick
			return url, nil
		default:
		}
		return "", fmt.Errorf("logging in to server %q: %w", server, err)
	case <-ctx.Done():
		return "", fmt.Errorf("logging in to server %q: it did not say where within %v", server, beginTime)
	}
}

// run waits for a person, and stores the login.
func (d *door) run(ctx context.Context, challenge login.Challenge, server string) error {
	if _, err := d.flow.Run(ctx, challenge); err != nil {
		d.tell("nobody has logged in to the server from the admin page", "err", err)
		return err
	}
	d.tell("somebody has logged in to the server from the admin page")
	d.log.Write(audit.Login(audit.MethodLogin, server, string(overview.Principal), "", "", "at the admin page"))
	return errors.New("somebody has logged in already")
}

// LogOut implements [cmdhook.Inner]: it deletes the stored login to a server. revoked says why its
// tokens were not revoked; nil if they were.
func (g inner) LogOut(ctx context.Context, server string) (revoked, err error) {
	d, err := g.outer.doorOf(server)
	if err != nil {
		return nil, err
	}
	if revoked, err = login.Logout(ctx, d.flow.HTTP, d.flow.Store, d.flow.URL); err != nil {
		return nil, fmt.Errorf("logging out of server %q: %w", server, err)
	}
	line := audit.Login(audit.MethodLogout, server, string(overview.Principal), "", "", "at the admin page")
	if revoked != nil {
		line.Reason += "; it was not revoked: " + revoked.Error()
	}
	d.log.Write(line)
	return revoked, nil
}
