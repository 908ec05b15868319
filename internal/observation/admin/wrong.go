package admin

import (
	"log/slog"
	"net/http"
	"net/netip"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

const (
	// maxWrongEach is how many wrong tokens of an address are answered per second as if they
	// were none, after wrongBurst at once.
	maxWrongEach = 1
	wrongBurst   = 20
	// maxAddresses bounds the addresses that are remembered.
	maxAddresses = 4096
	// refusedToken is why, as the metric says it.
	refusedToken = "admin_token"
)

// wrongTokens counts the requests with a wrong token, or a wrong code of a link, logs one line in ten seconds at most
// (CWE-779), and slows the addresses that send many. Whoever asks it has compared the token
// before: a right one is never slowed. Safe for concurrent use.
type wrongTokens struct {
	metrics mcp.Metrics
	tell    func(*http.Request, netip.Prefix) // nil tells nobody
	log     *slog.Logger
	line    transport.WarnLimiter

	// mu guards the field below. It is held for map work only.
	mu   sync.Mutex
	each *simplelru.LRU[mcp.Share, *rate.Limiter] // by address
}

func newWrongTokens(o Options) *wrongTokens {
	w := &wrongTokens{metrics: o.Counts, tell: o.Wrong, log: o.Logger}
	if w.metrics == nil {
		w.metrics = mcp.NoMetrics{}
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	w.each, _ = simplelru.NewLRU[mcp.Share, *rate.Limiter](maxAddresses, nil) // the size is in range
	return w
}

// take takes a request with a wrong token, and reports whether its address has sent too many.
func (t *wrongTokens) take(r *http.Request) (tooMany bool) {
	t.metrics.Refused("", refusedToken)
	t.line.Warn(t.log, "admin: request with a wrong token", "downstream", r.RemoteAddr)
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // zero is an unknown one, or a socket's
	who := mcp.NewShare(mcp.Anonymous, from.Addr())
	if t.tell != nil {
		t.tell(r, who.Net)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.each.Get(who)
	if !ok {
		l = rate.NewLimiter(maxWrongEach, wrongBurst)
		t.each.Add(who, l)
	}
	return !l.Allow()
}

// slow answers a request whose address has sent too many wrong tokens.
//
// Spec: RFC 6585, 4.
func slow(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many wrong tokens came from this address; wait a second, and send the right one", http.StatusTooManyRequests)
}

// wrong notices wrong tokens in the headers of requests. Whether the process is well,
// everybody may know at any time.
func (g *guard) wrong(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		well := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		if g.hasWrong(r) && g.wrongs.take(r) && !well {
			slow(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hasWrong reports whether a request sends a token that is none of those of the address.
func (g *guard) hasWrong(r *http.Request) bool {
	sent, wanted := bearer(r.Header), g.wanted()
	if sent == "" || wanted == "" && g.metricsToken == "" {
		return false
	}
	return !wanted.is(sent) && !g.metricsToken.is(sent) && !g.sessions.allows(r)
}
