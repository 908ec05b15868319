package router

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// maxProfiles bounds the number of cached profiles. One that is evicted is computed
	// again.
	maxProfiles = 2048
	// maxProfile bounds the content of a cached profile, in bytes. A larger one is
	// computed for each request.
	maxProfile = 1 << 10
	// profileOverhead is the memory of a cached profile besides its content, in bytes.
	profileOverhead = 512
)

// profiles finds the profile of each request to one server. Safe for concurrent use.
type profiles struct {
	scope        string // what all scopes begin with, and no other server's
	isolation    settings.Isolation
	clientInfo   bool
	experimental bool            // clients' experimental capabilities are forwarded
	hide         []string        // extensions that are not part of a profile
	hideTasks    []string        // hide, and the tasks extension
	single       bool            // all clients share one upstream session
	byClient     bool            // a server that speaks both eras serves legacy clients in theirs
	era          func() spec.Era // the server's; set before the first assign
	saw          func(*mcp.Identity)
	cache        *lru.Cache[profileKey, mcp.Profile]
	account      *budget.Account // for the memory of cache; nil for no bound
}

// A profileKey is a profile's parts as the client sent them: two spellings of one profile are
// two keys. If the parts are longer than a key, it is their digest, so that memory stays
// bounded (CWE-770).
type profileKey struct {
	len  int // of the text; -1 of a digest
	text [64]byte
}

// profileParts are the parts of requests that make up a profile.
type profileParts struct {
	principal          mcp.Principal
	capabilities, info []byte
	tasks              bool // both the client and the server have the tasks extension

	// Set for legacy clients of servers that are, or may be, legacy: each client session
	// has its own upstream session, of the same revision.
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

func newProfiles(so ServerOptions, scope string) (*profiles, error) {
	hide := so.Settings.Hidden()
	p := &profiles{
		scope: scope, isolation: so.Settings.Isolation, clientInfo: so.Settings.ForwardsClientInfo(), experimental: so.Settings.Experimental,
		hide: hide, hideTasks: append(slices.Clone(hide), spec.ExtensionTasks),
		single: so.oneSession(), byClient: so.Settings.ByClient(), era: func() spec.Era { return spec.Unknown }, saw: so.Saw,
	}
	var err error
	p.cache, err = lru.NewWithEvict(maxProfiles, func(_ profileKey, prof mcp.Profile) { p.forgotten(prof) })
	return p, err
}

// assign sets the request's profile.
func (p *profiles) assign(req *mcp.Request) error {
	if p.saw != nil {
		p.saw(req.Identity)
	}
	parts := profileParts{capabilities: req.Capabilities, tasks: p.sharesTasks(req)}
	if p.isolation != settings.IsolateNothing {
		parts.principal = req.Principal
	}
	if req.Session != "" && p.perSession() {
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

// perSession reports whether the session of each legacy client is, or may be, a profile of its
// own.
func (p *profiles) perSession() bool {
	return (p.byClient || p.era() != spec.Modern) && !p.single
}

// sharesTasks reports whether both the client and the server may have the tasks extension.
// It asks for the server's era only if the client declares the extension.
func (p *profiles) sharesTasks(req *mcp.Request) bool {
	return req.Era == spec.Modern && bytes.Contains(req.Capabilities, []byte(spec.ExtensionTasks)) && p.era() == spec.Modern
}

// remember caches a small profile, if there is memory. Others are computed again for each
// request.
func (p *profiles) remember(key profileKey, prof mcp.Profile) {
	size := profileSize(prof)
	if size > profileOverhead+maxProfile || p.account != nil && !p.account.Take(size) {
		return
	}
	if had, _ := p.cache.ContainsOrAdd(key, prof); had {
		p.forgotten(prof)
	}
}

// forgotten gives back the memory of a cached profile.
func (p *profiles) forgotten(prof mcp.Profile) {
	if p.account != nil {
		p.account.Give(profileSize(prof))
	}
}

// profileSize returns the memory of a cached profile, in bytes.
func profileSize(prof mcp.Profile) int64 {
	return int64(profileOverhead + len(prof.Capabilities) + len(prof.ClientInfo))
}

// profile computes a profile. Its scope is a digest of the parts, because scopes appear in
// logs and in events, and a principal may be a secret.
func (p *profiles) profile(parts *profileParts) mcp.Profile {
	hide := p.hideTasks
	if parts.tasks {
		hide = p.hide
	}
	prof := mcp.Profile{
		Principal:    parts.principal,
		Capabilities: mcp.Crossing(parts.capabilities, p.experimental, hide),
		Single:       p.isolation == settings.IsolateRequest && parts.session == "",
		Revision:     parts.revision,
	}
	if len(parts.info) > 0 {
		prof.ClientInfo = wire.AppendCanonical(nil, parts.info)
	}
	if p.single {
		prof.Scope = p.scope + "/shared"
		return prof
	}
	h := sha256.New()
	for _, part := range []string{string(parts.principal), string(prof.Capabilities), string(prof.ClientInfo), parts.session, string(parts.revision)} {
		// Quotes keep the parts from running into each other.
		h.Write(wire.AppendString(nil, part))
	}
	prof.Scope = p.scope + "/" + hex.EncodeToString(h.Sum(nil)[:12])
	return prof
}

// oneSession reports whether all clients share one upstream session: a shared command is one
// process.
func (so *ServerOptions) oneSession() bool {
	return so.Command && so.Settings.Isolation == settings.IsolateNothing
}

// close gives back the memory of the cached profiles.
func (p *profiles) close() { p.cache.Purge() }
