package gateway

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// errEnded is the error of a Gateway that was shut down.
var errEnded = errors.New("mcpbridge: the gateway was shut down")

// Reloaded says what a [Gateway.Reload] has changed: names of servers, in order, and then of groups.
type Reloaded struct {
	Added, Changed, Removed []string
	// Renewed are servers that go on, with other credentials.
	Renewed []string
}

// Reload has the gateway serve by other options. Servers whose options are the same go on
// undisturbed, with their sessions, streams and calls; so do those of which only credentials
// are others: values of Header, what UpstreamAuth has of Token and ClientCredentials, and the
// Tokens of an Auth. These count from the next request.
//
// A group goes on with other members, too, and with members that were replaced: its clients are
// told that lists have changed. It is replaced if its Auth, PublicURL, Policy or Rates are others.
//
// A server that has changed is replaced by a new one, and one that is missing is removed. Its
// listen streams end with their result, and its sessions, so that clients open others; calls
// in flight go on for Drain. What all servers are built with replaces them all when it
// changes: Authenticator, what Auth has beyond Tokens, the time-outs, Logins, Audit, StateDir,
// PinDir, Environ, OneClient and Logger, and limits on what one server has. Another PublicURL
// replaces those that have none of their own, and those with logins PerPrincipal.
// Of Replicas the Keys alone are used. All other options apply at once.
//
// A Handler, RoundTripper, TLS or Authenticator is the same if it is the same value, which a
// function never is.
//
// If Reload fails, nothing has changed.
func (g *Gateway) Reload(o Options) (*Reloaded, error) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	if g.ended {
		return nil, errEnded
	}
	return g.reload(o, "")
}

// reload is Reload by whoever has the turn. The server anew is replaced even if it is as before.
func (g *Gateway) reload(o Options, anew string) (*Reloaded, error) {
	if err := o.deriveStateKeys(); err != nil {
		return nil, err
	}
	b := newBuild(&o, g.metrics)
	b.node, b.hurry, b.losses, b.sealer, b.lists, b.place, b.anew = g.node, g.hurry, g.losses, g.sealer, g.lists, g.place, anew
	if g.node == nil || o.Replicas == nil || o.Replicas.Engine == nil {
		b.place = placeOf(&o, nil)
	}
	if err := b.follow(g.current); err != nil {
		_ = b.close() // what was begun, and has nothing to say
		return nil, err
	}
	if err := g.replaceKeys(&o); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if err := g.inner.Reload(b.options(g.current)); err != nil {
		_ = g.replaceKeys(&g.current.opts) // which were good before
		_ = b.close()
		return nil, fmt.Errorf("mcpbridge: %w", err)
	}
	former := g.current
	g.stand(b)
	out := b.compare(former)
	b.renew(former)
	if g.begun {
		b.start()
	}
	if former.common != b.common {
		former.common.leave()
	}
	return out, nil
}

// stand makes b what the Gateway is made of.
func (g *Gateway) stand(b *build) {
	g.current = &current{opts: *b.opts, common: b.common, logins: b.logins, parts: b.parts, groups: b.groups}
	if !b.keepsCommon {
		b.common.users.Add(1) // the Gateway
	}
	for _, p := range b.all() {
		if !b.kept[p] {
			b.common.users.Add(1)
		}
	}
	g.lists.use(b)
	g.tellServers(b.opts)
}

// follow makes all parts. Those that are as before are kept.
func (b *build) follow(former *current) error {
	if err := b.checkLimits(); err != nil {
		return err
	}
	b.common.identity = b.commonIdentity()
	if b.common.identity.same(&former.common.identity) {
		b.common, b.keepsCommon = former.common, true
		if b.opts.PublicURL == former.opts.PublicURL {
			b.logins = former.logins
		}
		if err := errors.Join(checkTokens(b.opts.Auth), b.checkLoginKeys()); err != nil {
			return fmt.Errorf("mcpbridge: Auth: %w", err)
		}
	} else if err := b.addCommon(); err != nil {
		return err
	}
	for i := range b.opts.Servers {
		s := &b.opts.Servers[i]
		p, err := b.of(s).keepOrMake(former)
		if err != nil {
			return fmt.Errorf("mcpbridge: server %q: %w", s.Name, err)
		}
		b.parts = append(b.parts, p)
	}
	return errors.Join(b.addGroups(former), b.addAccess())
}

// keepOrMake returns the parts of a server.
func (s serverBuild) keepOrMake(former *current) (*serverParts, error) {
	p := former.find(s.Name)
	if s.Name == s.b.anew || !s.b.keepsCommon || p == nil || s.b.kept[p] || !p.identity.same(s.identity()) {
		return s.newParts()
	}
	if _, err := s.ownCredentials(); err != nil {
		return nil, err
	}
	s.b.kept[p] = true
	return p, checkTokens(s.Auth)
}

// checkTokens reports what is wrong with tokens that are to replace others.
func checkTokens(a *Auth) error {
	if a == nil || len(a.Tokens) == 0 {
		return nil
	}
	if err := a.fault(); err != nil {
		return err
	}
	_, err := auth.NewTokens(a.tokens())
	return err
}

// compare returns what changes by b.
func (b *build) compare(former *current) *Reloaded {
	out := &Reloaded{}
	for i, p := range b.parts {
		name := p.identity.Name
		switch was := former.find(name); {
		case was == nil:
			out.Added = append(out.Added, name)
		case !b.kept[p]:
			out.Changed = append(out.Changed, name)
		case b.of(&b.opts.Servers[i]).isRenewed(former):
			out.Renewed = append(out.Renewed, name)
		}
	}
	b.compareGroups(former, out)
	for _, p := range allParts(former.parts, former.groups) {
		if !slices.ContainsFunc(b.all(), func(is *serverParts) bool { return is.identity.Name == p.identity.Name }) {
			out.Removed = append(out.Removed, p.identity.Name)
		}
	}
	return out
}

// isRenewed reports whether a server that is kept gets other credentials.
func (s serverBuild) isRenewed(former *current) bool {
	was := former.options(s.Name)
	return !reflect.DeepEqual(s.Header, was.Header) || !reflect.DeepEqual(s.UpstreamAuth, was.UpstreamAuth) || !reflect.DeepEqual(s.Auth, was.Auth) ||
		s.Auth == nil && !reflect.DeepEqual(s.b.opts.Auth, former.opts.Auth)
}

// renew gives the parts that are kept the credentials of their options. Those that are the same stay:
// they have tokens that are good.
func (b *build) renew(former *current) {
	if b.keepsCommon {
		replaceTokens(b.common.auth, b.opts.Auth)
		b.replaceLoginKeys()
	}
	for i, p := range b.parts {
		if !b.kept[p] {
			continue
		}
		s := &b.opts.Servers[i]
		if len(s.Header) > 0 {
			p.renewed.Set(s.Header)
		}
		if was := former.options(s.Name); !reflect.DeepEqual(s.UpstreamAuth, was.UpstreamAuth) || !slices.Equal(b.opts.Logins.AllowHosts, former.opts.Logins.AllowHosts) {
			if own, err := b.of(s).ownCredentials(); err == nil && own != nil { // it was checked
				p.current.Replace(own)
			}
		}
		replaceTokens(p.auth, s.Auth)
	}
	for i, p := range b.groups {
		if b.kept[p.serverParts] {
			replaceTokens(p.auth, b.opts.Groups[i].Auth)
		}
	}
}

// replaceTokens puts the tokens of an Auth, which were checked, in the place of others.
func replaceTokens(by auth.Authenticator, a *Auth) {
	if t := auth.TokensOf(by); t != nil {
		_ = t.Replace(a.tokens())
	}
}

// start begins what is new.
func (b *build) start() {
	if !b.keepsCommon {
		b.common.start()
	}
	for _, p := range b.all() {
		if !b.kept[p] {
			p.start()
		}
	}
}
