package client

import (
	"cmp"
	"fmt"
	"os/user"

	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
)

// record writes a line into the audit log for each change of the server's tools that whoever runs
// the program accepts, if the configuration has one. One on the standard output of another process
// is out of reach.
func (g *Pinning) record(changes []pin.Change) error {
	path := g.Audit.Path()
	if path == "" || path == audit.Stdout || len(changes) == 0 {
		return nil
	}
	log, err := audit.Open(audit.Options{Path: path, Required: g.Audit.Required})
	if err != nil {
		return fmt.Errorf("%w; run this as the user that mcpbridge runs as", err)
	}
	for _, change := range changes {
		digest, what := "", "is forgotten, since the server does not have it any more"
		if change.Is != nil {
			digest, what = pin.Digest(change.Is), "is accepted by mcpbridge pin"
		}
		r := audit.Pinned(g.Server, change.Tool, digest, what, false)
		r.Principal = "user:" + userName()
		log.Write(r)
	}
	if err := log.Close(); err != nil {
		return fmt.Errorf("writing the audit log: %w", err)
	}
	return nil
}

// userName returns who runs the program, as the system calls them.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return cmp.Or(u.Username, u.Uid)
}
