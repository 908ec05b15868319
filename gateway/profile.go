package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxProfiles bounds how many profiles are remembered. Forgetting one costs its
// computation, no more.
const maxProfiles = 4096

// A profiler puts requests of one server into profiles. Safe for concurrent use.
type profiler struct {
	server     string
	isolation  Isolation
	clientInfo bool
	one        bool            // there is one session upstream for all
	era        func() spec.Era // the upstream's; set before the first admit
	known      *lru.Cache[profileKey, exchange.Profile]
}

// profileKey is what a profile is made of, as it came: two spellings of one
// profile are two keys.
type profileKey struct {
	principal          exchange.Principal
	capabilities, info string

	// Of legacy clients of a legacy server, or of one that may be: each session has
	// one upstream, of its own revision.
	session  string
	revision spec.Revision
}

func newProfiler(so ServerOptions) (*profiler, error) {
	known, err := lru.New[profileKey, exchange.Profile](maxProfiles)
	isolation := so.Isolation
	if isolation == "" {
		isolation = IsolatePrincipal
	}
	return &profiler{server: so.Name, isolation: isolation, clientInfo: so.ForwardClientInfo, one: so.oneSession(), era: func() spec.Era { return spec.Unknown }, known: known}, err
}

// admit sets the request's profile.
func (p *profiler) admit(req *exchange.Request) error {
	key := profileKey{capabilities: string(req.Capabilities)}
	if p.isolation != IsolateNothing {
		key.principal = req.Principal
	}
	if req.Session != "" && p.era() != spec.Modern && !p.one {
		key.session, key.revision = req.Session, req.Revision
	}
	if p.clientInfo || key.session != "" {
		key.info = string(req.ClientInfo)
	}
	prof, ok := p.known.Get(key)
	if !ok {
		prof = p.profile(key)
		p.known.Add(key, prof)
	}
	req.Profile = prof
	req.Profile.Share = string(req.Principal)
	return nil
}

// profile computes a profile. Its scope is a digest, not the parts: it stands in
// logs and on the bus, and a principal may be a secret.
func (p *profiler) profile(key profileKey) exchange.Profile {
	prof := exchange.Profile{
		Capabilities: canonical(key.capabilities, "{}"),
		ClientInfo:   canonical(key.info, ""),
		Single:       p.isolation == IsolateRequest && key.session == "",
		Revision:     key.revision,
	}
	if p.one {
		prof.Scope = p.server + "/shared"
		return prof
	}
	h := sha256.New()
	for _, part := range []string{string(key.principal), string(prof.Capabilities), string(prof.ClientInfo), key.session, string(key.revision)} {
		// Quotes keep the parts from running into each other.
		h.Write(wire.AppendString(nil, part))
	}
	prof.Scope = p.server + "/" + hex.EncodeToString(h.Sum(nil)[:12])
	return prof
}

// oneSession reports whether all clients have one session upstream: a shared command has
// one process.
func (so *ServerOptions) oneSession() bool {
	return so.Command && so.Isolation == IsolateNothing
}

// serverOf returns the name of the server that a scope belongs to.
func serverOf(scope string) string {
	name, _, _ := strings.Cut(scope, "/") // no server's name has one
	return name
}

func canonical(text, empty string) json.RawMessage {
	if text == "" {
		text = empty
	}
	if text == "" {
		return nil
	}
	return wire.AppendCanonical(nil, []byte(text))
}
