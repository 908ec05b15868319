package profile

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
	// overhead is the memory of a cached profile besides its content, in bytes.
	overhead = 512
)

// Options configure Profiles. All but Settings are required.
type Options struct {
	// Scope is what all scopes of the server begin with, and no other server's.
	Scope string
	// Settings are the server's.
	Settings settings.Server
	// Shared says that all clients share one upstream session.
	Shared bool
	// Group says that the server is a group. Its profiles have all that a member may want of a
	// client: each makes of it what it is set to, see [Profiles.Of].
	Group bool
	// Era returns the server's.
	Era func() spec.Era
	// Saw is told of the credential of each request; nil for nobody.
	Saw func(*mcp.Identity)
	// Account is for the memory of what is remembered; nil for no bound.
	Account *budget.Account
}

// Profiles finds the profile of each request to one server. Safe for concurrent use.
type Profiles struct {
	scope        string
	isolation    settings.Isolation
	clientInfo   bool
	experimental bool     // clients' experimental capabilities are forwarded
	hide         []string // extensions that are not part of a profile
	hideTasks    []string // hide, and the tasks extension
	group        bool     // see Options
	single       bool     // all clients share one upstream session
	byClient     bool     // a server that speaks both eras serves legacy clients in theirs
	era          func() spec.Era
	saw          func(*mcp.Identity)
	cache        *lru.Cache[key, mcp.Profile]
	recent       recents // of profiles for those of groups
	account      *budget.Account
}

// A key is a profile's parts as the client sent them: two spellings of one profile are
// two keys. If the parts are longer than a key, it is their digest, so that memory stays
// bounded (CWE-770).
type key struct {
	len  int // of the text; -1 of a digest
	text [64]byte
}

// parts are the parts of requests that make up a profile.
type parts struct {
	principal          mcp.Principal
	capabilities, info []byte
	tasks              bool // both the client and the server have the tasks extension

	// Set for legacy clients of servers that are, or may be, legacy: each client session
	// has its own upstream session, of the same revision.
	session  string
	revision spec.Revision
}

// key returns the key of the parts.
func (p *parts) key() key {
	text := make([]byte, 0, maxProfile) // on the stack
	for _, part := range []string{string(p.principal), p.session, string(p.revision)} {
		text = wire.AppendString(text, part) // quotes keep the parts from running into each other
	}
	text = strconv.AppendBool(text, p.tasks)
	text = append(append(text, p.capabilities...), ' ')
	text = append(text, p.info...)
	k := key{len: len(text)}
	if copy(k.text[:], text) < len(text) {
		digest := sha256.Sum256(text)
		k = key{len: -1}
		copy(k.text[:], digest[:])
	}
	return k
}

// New returns the Profiles of a server. The caller calls Close.
func New(o Options) (*Profiles, error) {
	hide := o.Settings.Hidden()
	p := &Profiles{
		scope: o.Scope, isolation: o.Settings.Isolation, clientInfo: o.Settings.ForwardsClientInfo(), experimental: o.Settings.Experimental || o.Group,
		hide: hide, hideTasks: append(slices.Clone(hide), spec.ExtensionTasks),
		group: o.Group, single: o.Shared, byClient: o.Settings.ByClient(), era: o.Era, saw: o.Saw, account: o.Account,
	}
	var err error
	p.cache, err = lru.NewWithEvict(maxProfiles, func(_ key, prof mcp.Profile) { p.forgotten(prof) })
	return p, err
}

// Close gives back the memory of what is remembered.
func (p *Profiles) Close() { p.cache.Purge() }

// Scope returns what all scopes begin with.
func (p *Profiles) Scope() string { return p.scope }

// Isolation returns what is shared among principals.
func (p *Profiles) Isolation() settings.Isolation { return p.isolation }

// Assign sets the request's profile.
func (p *Profiles) Assign(req *mcp.Request) error {
	if p.saw != nil {
		p.saw(req.Identity)
	}
	of := p.partsOf(req)
	if req.Session != "" && p.PerSession() {
		of.session, of.revision = req.Session, req.Revision
	}
	if p.clientInfo || of.session != "" {
		of.info = req.ClientInfo
	}
	at := of.key()
	prof, ok := p.cache.Get(at)
	if !ok {
		prof = p.profile(&of)
		p.remember(at, prof)
	}
	req.Profile = prof
	req.Profile.Share = req.Share
	return nil
}

// partsOf returns what all profiles of a request have.
func (p *Profiles) partsOf(req *mcp.Request) parts {
	of := parts{capabilities: req.Capabilities, tasks: p.sharesTasks(req)}
	if p.isolation != settings.IsolateNothing {
		of.principal = req.Principal
	}
	return of
}

// Candidates returns the profiles that the request of another replica may mean: it names a
// client, or the gateway itself if clients' names are no part of the profile.
func (p *Profiles) Candidates(req *mcp.Request) []mcp.Profile {
	of := p.partsOf(req)
	out := []mcp.Profile{p.profile(&of)}
	if p.clientInfo {
		of.info = req.ClientInfo
		out = append(out, p.profile(&of))
	}
	return out
}

// PerSession reports whether the session of each legacy client is, or may be, a profile of its
// own.
func (p *Profiles) PerSession() bool {
	return (p.byClient || p.era() != spec.Modern) && !p.single
}

// sharesTasks reports whether both the client and the server may have the tasks extension.
// It asks for the server's era only if the client declares the extension.
func (p *Profiles) sharesTasks(req *mcp.Request) bool {
	return req.Era == spec.Modern && declaresTasks(req.Capabilities) && (p.group || p.era() == spec.Modern)
}

func declaresTasks(capabilities []byte) bool {
	return bytes.Contains(capabilities, []byte(spec.ExtensionTasks))
}

// remember caches a small profile, if there is memory. Others are computed again for each
// request.
func (p *Profiles) remember(at key, prof mcp.Profile) {
	size := sizeOf(prof)
	if size > overhead+maxProfile || p.account != nil && !p.account.Take(size) {
		return
	}
	if had, _ := p.cache.ContainsOrAdd(at, prof); had {
		p.forgotten(prof)
	}
}

// forgotten gives back the memory of a cached profile.
func (p *Profiles) forgotten(prof mcp.Profile) {
	if p.account != nil {
		p.account.Give(sizeOf(prof))
	}
}

// sizeOf returns the memory of a cached profile, in bytes.
func sizeOf(prof mcp.Profile) int64 {
	return int64(overhead + len(prof.Capabilities) + len(prof.ClientInfo))
}

// profile computes a profile. Its scope is a digest of the parts, because scopes appear in
// logs and in events, and a principal may be a secret.
func (p *Profiles) profile(parts *parts) mcp.Profile {
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
