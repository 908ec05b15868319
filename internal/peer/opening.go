package peer

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// Opening is the header by which a replica names what it has opened for another one: the
	// other ends it by that, when it ends itself. Clients don't see it.
	Opening = "Mcpbridge-Opening"
	// PartPath is where a replica is asked to end such a thing in order. The name of a server
	// follows, after a slash, and the name of the opening is OpeningParam.
	PartPath = "/peer/part"
	// OpeningParam is a parameter of the query.
	OpeningParam = "opening"
	// YieldParam is another one, without a value, if it ends because of ErrYielded. Replicas that
	// don't know it end it as when this one ends.
	YieldParam = "yield"

	// partTimeout bounds asking.
	partTimeout = time.Second
)

// ErrYielded is why something ends whose place another client needs.
var ErrYielded = errors.New("another client needs its place")

// part asks the replica that serves what f has opened to end it in order, calls in flight
// included. It reports false if that can't be asked.
func (g *Group) part(f Forward, opening string, why error) bool {
	if opening == "" || f.Part == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(g.live, partTimeout)
	defer cancel()
	query := "?" + OpeningParam + "=" + url.QueryEscape(opening)
	if why == ErrYielded {
		query += "&" + YieldParam
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL(f.To, f.Part)+query, nil)
	if err != nil {
		return false
	}
	resp, err := g.RoundTripper(f.To, func(*http.Request) mcp.Sender { return f.Sender }).RoundTrip(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // the status is enough
	return resp.StatusCode == http.StatusNoContent
}

// whenEnded calls end with the cause once one of contexts ends. The function that it returns ends that, and
// waits for a call under way.
func whenEnded(ends []context.Context, end func(why error)) (forget func()) {
	var once sync.Once
	var calls sync.WaitGroup
	var stops []func() bool
	for _, ctx := range ends {
		calls.Add(1)
		stops = append(stops, context.AfterFunc(ctx, func() {
			defer calls.Done()
			once.Do(func() { end(context.Cause(ctx)) })
		}))
	}
	return func() {
		for _, stop := range stops {
			if stop() {
				calls.Done()
			}
		}
		calls.Wait()
	}
}
