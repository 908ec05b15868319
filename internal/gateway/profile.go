package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// maxProfiles bounds how many profiles are remembered. Forgetting one costs its
	// computation, no more.
	maxProfiles = 4096
	// maxProfile bounds what a profile that is remembered says, in bytes. A larger one
	// is computed for each request.
	maxProfile = 1 << 10
	// profileOverhead is what a profile takes beside that.
	profileOverhead = 512
)

// A profiler puts requests of one server into profiles. Safe for concurrent use.
type profiler struct {
	server       string
	isolation    Isolation
	clientInfo   bool
	experimental bool            // what clients have of experimental capabilities crosses
	hide         []string        // extensions that are no part of a profile
	hideTasks    []string        // hide, with that of tasks
	single       bool            // there is one session upstream for all
	era          func() spec.Era // the upstream's; set before the first admit
	cache        *lru.Cache[profileKey, mcp.Profile]
	account      *budget.Account // that what is known takes from; nil for no bound
}

// A profileKey is what a profile is made of, as it came: two spellings of one profile are
// two keys. Of a text that is longer than a key there is a digest: the text itself is not
// kept (CWE-770).
type profileKey struct {
	len  int // of the text; -1 of a digest
	text [64]byte
}

// profileParts are what a profile is made of.
type profileParts struct {
	principal          mcp.Principal
	capabilities, info []byte
	tasks              bool // the client and its server have the tasks extension in common

	// Of legacy clients of a legacy server, or of one that may be: each session has
	// one upstream, of its own revision.
	session  string
	revision spec.Revision
}

// key returns the key of the parts.
func (p *profileParts) key() profileKey {
	text := make([]byte, 0, maxProfile) // on the stack
	for _, part := range []string{string(p.principal), p.session, string(p.revision)} {
		text = wire.AppendString(text, part) // quotes keep the parts from running into each other
	}
	text = strconv.AppendBool(text, p.tasks)
	text = append(append(text, p.capabilities...), ' ')
	text = append(text, p.info...)
	k := profileKey{len: len(text)}
	if copy(k.text[:], text) < len(text) {
		digest := sha256.Sum256(text)
		k = profileKey{len: -1}
		copy(k.text[:], digest[:])
	}
	return k
}

func newProfiler(so ServerOptions) (*profiler, error) {
	isolation := so.Isolation
	if isolation == "" {
		isolation = IsolatePrincipal
	}
	p := &profiler{
		server: so.Name, isolation: isolation, clientInfo: so.ForwardClientInfo, experimental: so.Experimental,
		hide: so.HideExtensions, hideTasks: append(slices.Clone(so.HideExtensions), spec.ExtensionTasks),
		single: so.oneSession(), era: func() spec.Era { return spec.Unknown },
	}
	var err error
	p.cache, err = lru.NewWithEvict(maxProfiles, func(_ profileKey, prof mcp.Profile) { p.forgotten(prof) })
	return p, err
}

// admit sets the request's profile.
func (p *profiler) admit(req *mcp.Request) error {
	parts := profileParts{capabilities: req.Capabilities, tasks: p.sharesTasks(req)}
	if p.isolation != IsolateNothing {
		parts.principal = req.Principal
	}
	if req.Session != "" && p.era() != spec.Modern && !p.single {
		parts.session, parts.revision = req.Session, req.Revision
	}
	if p.clientInfo || parts.session != "" {
		parts.info = req.ClientInfo
	}
	key := parts.key()
	prof, ok := p.cache.Get(key)
	if !ok {
		prof = p.profile(&parts)
		p.remember(key, prof)
	}
	req.Profile = prof
	req.Profile.Share = req.Share
	return nil
}

// sharesTasks reports whether a request's client and its server may have the tasks
// extension in common. The server's era is looked at only for clients that speak of the
// extension.
func (p *profiler) sharesTasks(req *mcp.Request) bool {
	return req.Era == spec.Modern && bytes.Contains(req.Capabilities, []byte(spec.ExtensionTasks)) && p.era() == spec.Modern
}

// remember keeps a profile that is small, as long as there is memory: one that is
// forgotten is computed anew.
func (p *profiler) remember(key profileKey, prof mcp.Profile) {
	size := profileSize(prof)
	if size > profileOverhead+maxProfile || p.account != nil && !p.account.Take(size) {
		return
	}
	if had, _ := p.cache.ContainsOrAdd(key, prof); had {
		p.forgotten(prof)
	}
}

// forgotten gives back the memory of a profile.
func (p *profiler) forgotten(prof mcp.Profile) {
	if p.account != nil {
		p.account.Give(profileSize(prof))
	}
}

// profileSize is what a profile takes that is remembered, in bytes.
func profileSize(prof mcp.Profile) int64 {
	return int64(profileOverhead + len(prof.Capabilities) + len(prof.ClientInfo))
}

// profile computes a profile. Its scope is a digest, not the parts: it stands in
// logs and on the bus, and a principal may be a secret.
func (p *profiler) profile(parts *profileParts) mcp.Profile {
	hide := p.hideTasks
	if parts.tasks {
		hide = p.hide
	}
	prof := mcp.Profile{
		Principal:    parts.principal,
		Capabilities: mcp.Crossing(parts.capabilities, p.experimental, hide),
		Single:       p.isolation == IsolateRequest && parts.session == "",
		Revision:     parts.revision,
	}
	if len(parts.info) > 0 {
		prof.ClientInfo = wire.AppendCanonical(nil, parts.info)
	}
	if p.single {
		prof.Scope = p.server + "/shared"
		return prof
	}
	h := sha256.New()
	for _, part := range []string{string(parts.principal), string(prof.Capabilities), string(prof.ClientInfo), parts.session, string(parts.revision)} {
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
