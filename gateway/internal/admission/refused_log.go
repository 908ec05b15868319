package admission

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// Why credentials are refused, as the metric says it, besides the codes of challenges.
const (
	refusedMissing    = "no_credential"
	refusedPeer       = "peer_envelope"
	refusedUnverified = "not_verified" // what it takes to verify it is missing at the moment
)

// A refusedLog counts the requests to one server that are refused because of their
// credential. For each cause it logs at most one line every ten seconds, with how many
// there were, since anybody can send any number of them (CWE-779), and a flood of one must not
// hide another. So does the audit log, which
// knows the senders apart, but not the requests without a credential: those are no attempt.
type refusedLog struct {
	opts GuardOptions
	log  *slog.Logger

	// mu guards lines. It is not held while logging.
	mu    sync.Mutex
	lines map[refusedFor]*transport.WarnLimiter // there are few causes
}

// refusedFor is why a credential is refused: the reason that is counted, and its cause.
type refusedFor struct{ reason, cause string }

func newRefusedLog(o GuardOptions) *refusedLog {
	l := &refusedLog{opts: o, log: o.Logger, lines: make(map[refusedFor]*transport.WarnLimiter)}
	if o.Server != "" {
		l.log = l.log.With("upstream", o.Server)
	}
	return l
}

// line returns what limits the lines about a cause.
func (l *refusedLog) line(reason, cause string) *transport.WarnLimiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.lines[refusedFor{reason, cause}]
	if line == nil {
		line = new(transport.WarnLimiter)
		l.lines[refusedFor{reason, cause}] = line
	}
	return line
}

// report takes a request that is refused because of err.
func (l *refusedLog) report(r *http.Request, err error) {
	refusal := (*auth.Refusal)(nil)
	if !errors.As(err, &refusal) {
		l.opts.Metrics.Refused(l.opts.Server, refusedUnverified)
		limit := limitOf(err)
		if limit != "" {
			l.opts.Metrics.Limit("", limit)
		}
		l.line(refusedUnverified, limit).Warn(l.log, "request refused: its credential can't be verified", "downstream", r.RemoteAddr, "err", err)
		l.note(r, refusedUnverified, "")
		return
	}
	reason := cmp.Or(refusal.Code, refusedMissing)
	l.opts.Metrics.Refused(l.opts.Server, reason)
	l.line(reason, refusal.Cause).Log(l.log, slog.LevelInfo, "request refused: not authenticated", "downstream", r.RemoteAddr, "status", refusal.StatusCode(), "err", err)
	if refusal.Code != "" || refusal.StatusCode() != http.StatusNotFound && hasCredential(r) {
		l.note(r, cmp.Or(refusal.Code, "refused"), refusal.Reason)
	}
}

// limitOf returns the limit for which a credential could not be verified; empty if it was for
// something else.
func limitOf(err error) string {
	if busy := (*auth.BusyError)(nil); errors.As(err, &busy) {
		return busy.Limit
	}
	return ""
}

// hasCredential reports whether a request has something that may be a credential.
func hasCredential(r *http.Request) bool {
	return len(r.Header["Authorization"]) > 0 || r.TLS != nil && len(r.TLS.PeerCertificates) > 0
}

// note adds a refused credential to the audit log. text says why, beside reason.
func (l *refusedLog) note(r *http.Request, reason, text string) {
	if l.opts.Audit == nil {
		return
	}
	proxies, why := l.opts.Proxies(), reason
	if text != "" {
		why += ": " + l.opts.Secrets.String(text)
	}
	line := audit.Refusal(l.opts.Server, why, "", proxies.Address(r))
	line.Trace = trace.FromHeader(r.Header).TraceID()
	l.opts.Audit.Refused(line, proxies.ShareOf(r, mcp.Anonymous).Net, reason)
}

// reportPeer takes a request to the peer listener that is refused because of its envelope.
func (l *refusedLog) reportPeer(r *http.Request, err error) {
	l.opts.Metrics.Refused(l.opts.Server, refusedPeer)
	l.line(refusedPeer, "").Warn(l.log, "request of a replica refused", "downstream", r.RemoteAddr, "err", err)
	l.note(r, refusedPeer, err.Error())
}
