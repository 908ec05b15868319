package clients

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// AllClients is what [Select] wants for every client.
const AllClients = "all"

// Select returns the client with an id, or all.
func Select(id string) ([]Client, error) {
	all := All()
	if id == AllClients {
		return all, nil
	}
	var known []string
	for _, c := range all {
		if c.ID == id {
			return []Client{c}, nil
		}
		known = append(known, c.ID)
	}
	return nil, fmt.Errorf("no client is known as %q; write --as %s, or one of: %s", id, AllClients, strings.Join(known, ", "))
}

// A Contest plays the openings of clients against one server, directly and through
// mcpbridge. Each opening has a Way of its own.
type Contest struct {
	Directly, Bridged func() (Way, error)
	Timeout           time.Duration   // of each opening
	Began             func(id string) // is called before each client
}

// Run plays the openings in turn. Only what keeps them from being played is an error.
func (c *Contest) Run(ctx context.Context, as []Client) ([]Result, error) {
	var results []Result
	for i := range as {
		c.Began(as[i].ID)
		directly, err := c.play(ctx, &as[i], c.Directly)
		if err != nil {
			return nil, err
		}
		bridged, err := c.play(ctx, &as[i], c.Bridged)
		if err != nil {
			return nil, err
		}
		results = append(results, NewResult(&as[i], directly, bridged))
	}
	return results, nil
}

func (c *Contest) play(ctx context.Context, as *Client, open func() (Way, error)) (Outcome, error) {
	way, err := open()
	if err != nil {
		return Outcome{}, err
	}
	within, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	out := Play(within, as, way)
	_ = way.Close() // what became of the opening is known
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, err
}
