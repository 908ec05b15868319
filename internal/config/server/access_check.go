package server

import (
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// Check finds rules below path that don't do what they say; none if p is nil. Clients prove
// who they are as a says.
func (p *Policy) Check(rep *key.Report, path string, a *Auth) {
	if p == nil || rep.Mistaken(path) {
		return
	}
	if p.Default == "" {
		rep.Fail(path, "does not say what becomes of what no rule matches; write default: deny, or default: allow")
	}
	for i := range p.Rules {
		here := key.Join(path, "rules", strconv.Itoa(i))
		p.Rules[i].check(rep, here, a)
		if p.Default == "allow" {
			p.Rules[i].checkSpellings(rep, here)
		}
	}
}

// checkSpellings warns of a rule that denies resources of which nothing says how a server
// reads their URIs: another spelling of one would be allowed.
func (r *Rule) checkSpellings(rep *key.Report, path string) {
	if r.Deny == nil {
		return
	}
	for i, uri := range r.Deny.Resources {
		if !policy.HasSpellings(uri) {
			here := key.Join(path, "deny", "resources", strconv.Itoa(i))
			rep.Warn(here, "is a hint: the server may take other spellings of the URI for the same, which default: allow lets pass; write default: deny, and allow what may be read")
			return
		}
	}
}

func (r *Rule) check(rep *key.Report, path string, a *Auth) {
	if (r.Allow == nil) == (r.Deny == nil) {
		rep.Fail(path, "has to be one of allow and deny; write it as in - allow: {tools: [\"read_*\"]}")
		return
	}
	m, way := r.match()
	path = key.Join(path, way)
	if m.checkLists(rep, path) {
		return
	}
	compiled := r.compiled()
	if err := compiled.Check(); err != nil {
		rep.Fail(path, "%v", err)
		return
	}
	m.checkWho(rep, path, a)
}

// checkWho finds rules that match nobody, since clients prove nothing of what they name: one
// that denies would let everybody in.
func (m *Match) checkWho(rep *key.Report, path string, a *Auth) {
	anonymous := a == nil || a.Word != ""
	switch {
	case len(m.Claims) > 0 && (anonymous || len(a.JWT) == 0):
		rep.Fail(key.Join(path, "claims"), "only access tokens have claims, so that the rule matches nobody; set auth: {jwt: …}, or name principals")
	case len(m.Scopes) > 0 && (anonymous || len(a.Tokens) == 0 && len(a.JWT) == 0):
		rep.Fail(key.Join(path, "scopes"), "clients of this server have no scopes, so that the rule matches nobody; set auth with tokens or jwt, or name principals")
	case a.checkPrincipals(rep, key.Join(path, "principals"), m.Principals):
	case anonymous && len(m.Principals) > 0 && !policy.Matches(m.Principals, "anonymous"):
		rep.Fail(key.Join(path, "principals"), "all clients of this server are anonymous, so that the rule matches nobody; set auth")
	}
}

// checkPrincipals finds principals that nobody is, since certificates have other names.
func (a *Auth) checkPrincipals(rep *key.Report, path string, names []string) (found bool) {
	for i, name := range names {
		if rather := a.NotOfCertificates(name); rather != "" {
			rep.Fail(key.Join(path, strconv.Itoa(i)), "no client is called that, so that it matches nobody: certificates have mtls: before their names beside other ways, and only then; write %s", rather)
			found = true
		}
	}
	return found
}

// checkLists reports lists without elements: a rule must not match more because somebody
// has left a list empty.
func (m *Match) checkLists(rep *key.Report, path string) (found bool) {
	check := func(name string, list []string) {
		here := key.Join(path, name)
		if rep.Written(here) && len(list) == 0 {
			rep.Fail(here, "is empty, and would match everything; name something, or remove it")
			found = true
		}
		for i, text := range list {
			if text == "" {
				rep.Fail(key.Join(here, strconv.Itoa(i)), "is empty; write a name or a pattern, such as read_*")
				found = true
			}
		}
	}
	check("principals", m.Principals)
	check("scopes", m.Scopes)
	check("methods", m.Methods)
	check("tools", m.Tools)
	check("prompts", m.Prompts)
	check("resources", m.Resources)
	for name, values := range m.Claims {
		check(key.Join("claims", name), values)
	}
	return found
}

// Check finds rates below path without a meaning.
func (r *Rates) Check(rep *key.Report, path string) {
	check := func(rate Rate, path string) {
		if rate.Burst > 0 && rate.PerSecond == 0 {
			rep.Fail(key.Join(path, "burst"), "has no meaning without per_second; write that, too, or concurrent")
		}
	}
	check(r.Principal, key.Join(path, "principal"))
	check(r.Server, key.Join(path, "server"))
	for name, rate := range r.Tools {
		check(rate, key.Join(path, "tools", name))
	}
}
