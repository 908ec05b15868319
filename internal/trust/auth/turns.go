package auth

import (
	"errors"
	"net/http"
	"net/netip"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// maxInspections limits concurrent requests to the issuer, because anybody can send
	// invalid tokens; one address has half of them, so that it can't take all.
	maxInspections     = 32
	maxInspectionsEach = maxInspections / 2
	// maxRefusedEach is how many tokens of an address the issuer may refuse per second, after
	// refusedBurst at once. Before more are refused, it is asked about none.
	maxRefusedEach = 5
	refusedBurst   = 20
	// maxAddresses limits the addresses that are remembered.
	maxAddresses = 4096
)

// turns are those of addresses to have the issuer asked about a token. They are safe for
// concurrent use.
type turns struct {
	// mu guards the fields below. It is held for map work only.
	mu      sync.Mutex
	all     int                                      // asked about at the moment
	each    map[mcp.Share]int                        // of them, by address
	refused *simplelru.LRU[mcp.Share, *rate.Limiter] // what may still be refused
}

func newTurns() (*turns, error) {
	refused, err := simplelru.NewLRU[mcp.Share, *rate.Limiter](maxAddresses, nil)
	return &turns{each: make(map[mcp.Share]int), refused: refused}, err
}

// take returns what ends a turn of an address, and is told how it went; or a [*BusyError]. Nil
// is the gateway itself, which asks anew about a token that was accepted.
func (t *turns) take(who *mcp.Share) (end func(error), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.all >= maxInspections:
		return nil, &BusyError{Limit: "introspections", Most: maxInspections}
	case who == nil:
	case t.each[*who] >= maxInspectionsEach:
		return nil, &BusyError{Limit: "introspections_each", Most: maxInspectionsEach}
	case t.limiterLocked(*who).Tokens() < 1:
		return nil, &BusyError{Limit: "refused_tokens_each", Most: maxRefusedEach}
	}
	t.all++
	if who != nil {
		t.each[*who]++
	}
	return func(err error) { t.end(who, err) }, nil
}

func (t *turns) end(who *mcp.Share, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all--; who == nil {
		return
	}
	if t.each[*who]--; t.each[*who] == 0 {
		delete(t.each, *who)
	}
	if errors.As(err, new(*Refusal)) {
		t.limiterLocked(*who).Allow()
	}
}

func (t *turns) limiterLocked(who mcp.Share) *rate.Limiter {
	l, ok := t.refused.Get(who)
	if !ok {
		l = rate.NewLimiter(maxRefusedEach, refusedBurst)
		t.refused.Add(who, l)
	}
	return l
}

// shareOf returns who counts as the sender of a request to e until it is known who that is.
func (e *Endpoint) shareOf(r *http.Request) *mcp.Share {
	if r == nil {
		return nil
	}
	if e.Share != nil {
		who := e.Share(r)
		return &who
	}
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // zero is an unknown one
	who := mcp.NewShare(mcp.Anonymous, from.Addr())
	return &who
}
