package router

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// Why credentials are refused, as the metric says it, besides the codes of challenges.
const (
	refusedMissing    = "no_credential"
	refusedPeer       = "peer_envelope"
	refusedUnverified = "not_verified" // what it takes to verify it is missing at the moment
)

// A refusedLog counts the requests to one server that are refused because of their
// credential. For each reason it logs at most one line every ten seconds, with how many
// there were, since anybody can send any number of them (CWE-779).
type refusedLog struct {
	server  string // empty for paths that are no server's
	metrics mcp.Metrics
	log     *slog.Logger
	lines   map[string]*transport.WarnLimiter // by reason; read-only
}

func newRefusedLog(server string, o *Options) *refusedLog {
	l := &refusedLog{server: server, metrics: o.Metrics, log: o.Logger, lines: make(map[string]*transport.WarnLimiter)}
	if server != "" {
		l.log = l.log.With("upstream", server)
	}
	for _, reason := range []string{refusedMissing, refusedUnverified, refusedPeer, auth.CodeInvalidRequest, auth.CodeInvalidToken, auth.CodeInsufficientScope} {
		l.lines[reason] = new(transport.WarnLimiter)
	}
	return l
}

// report takes a request that is refused because of err.
func (l *refusedLog) report(r *http.Request, err error) {
	refusal := (*auth.Refusal)(nil)
	if !errors.As(err, &refusal) {
		l.metrics.Refused(l.server, refusedUnverified)
		l.lines[refusedUnverified].Warn(l.log, "request refused: its credential can't be verified", "downstream", r.RemoteAddr, "err", err)
		return
	}
	reason := refusal.Code
	if l.lines[reason] == nil {
		reason = refusedMissing
	}
	l.metrics.Refused(l.server, reason)
	l.lines[reason].Log(l.log, slog.LevelInfo, "request refused: not authenticated", "downstream", r.RemoteAddr, "status", refusal.StatusCode(), "err", err)
}

// reportPeer takes a request to the peer listener that is refused because of its envelope.
func (l *refusedLog) reportPeer(r *http.Request, err error) {
	l.metrics.Refused(l.server, refusedPeer)
	l.lines[refusedPeer].Warn(l.log, "request of a replica refused", "downstream", r.RemoteAddr, "err", err)
}
