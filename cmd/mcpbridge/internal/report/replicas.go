package report

import (
	"cmp"
	"io"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Replicas say how several processes would serve together, fit to be shown.
type Replicas struct {
	Engine    string `json:"engine,omitempty"` // without users and passwords
	Prefix    string `json:"prefix,omitempty"` // of names at the engine
	Peers     string `json:"peers,omitempty"`
	Peer      string `json:"peer"`
	Advertise string `json:"advertise"`
	TLS       bool   `json:"tls"`  // between replicas
	Keys      int    `json:"keys"` // how many
}

// replicasOf returns nil for one replica.
func replicasOf(r *config.Replicas) *Replicas {
	if r == nil {
		return nil
	}
	out := &Replicas{Peers: r.Peers, Peer: r.Peer, Advertise: cmp.Or(r.Advertise, r.Peer), TLS: r.TLS.Cert != "", Keys: len(r.Keys)}
	if u, err := replicas.ParseURL(r.Engine); err == nil {
		out.Engine, out.Prefix = u.Masked(), r.Prefix
	}
	return out
}

// by is how replicas know each other.
func (r *Replicas) by() string { return cmp.Or(r.Engine, r.Peers) }

// print prints it as a table of one row, whose error shows at the end.
func (r *Replicas) print(tw io.Writer) {
	if r == nil {
		return
	}
	secure := "no"
	if r.TLS {
		secure = "yes"
	}
	_, _ = output.Printf(tw, "\nREPLICAS BY\tPREFIX\tPEER\tADVERTISED AS\tTLS\tKEYS\n")
	_, _ = output.Printf(tw, "%s\t%s\t%s\t%s\t%s\t%d\n", r.by(), cmp.Or(r.Prefix, "-"), r.Peer, r.Advertise, secure, r.Keys)
}
