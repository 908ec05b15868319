package source

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Names are the names by which replicas claim the profiles of one server.
type Names struct {
	Server string
	// Definition tells the server from others of its name that are configured otherwise: what
	// one of them watches need not be what clients of the other ask for.
	Definition string
	// Whole has one name for all profiles of a principal, since one replica serves all its
	// calls: the owner of a connection is known before its first message.
	Whole bool
}

// Of returns the name by which a profile is claimed.
func (n Names) Of(p mcp.Profile) string {
	if n.Whole {
		return n.OfPrincipal(p.Principal)
	}
	return n.Definition + "/" + Name(p.Scope)
}

// OfPrincipal returns the one name of the profiles of a principal.
func (n Names) OfPrincipal(p mcp.Principal) string {
	sum := sha256.Sum256([]byte(p)) // it may be a secret
	return n.Definition + "/" + n.Server + "/of/" + hex.EncodeToString(sum[:12])
}

// Name returns what replicas call a scope.
func Name(scope string) string { return mcp.PlainScope(scope) }
