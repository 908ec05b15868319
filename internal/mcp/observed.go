package mcp

import "context"

type observedKey struct{}

// WithObserved returns a context with what observers of a request are told of it, for what is
// done for the request through an interface that knows no requests.
func WithObserved(ctx context.Context, o *Observed) context.Context {
	return context.WithValue(ctx, observedKey{}, o)
}

// ObservedIn returns what WithObserved has put into a context; nil without it.
func ObservedIn(ctx context.Context) *Observed {
	o, _ := ctx.Value(observedKey{}).(*Observed)
	return o
}
