package source

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/mcpbridge/mcpbridge/gateway/internal/hub"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

const (
	// maxTopics bounds the resources of one stream, and maxBody its request, in bytes. A
	// replica that needs more watches by itself.
	maxTopics = 1 << 16
	maxBody   = 16 << 20
	// A call has more than its client has sent in one message: what maxAdded bounds, in bytes, besides
	// the client's capabilities and clientInfo. Answers to questions nest by addedDepth more than they did.
	maxAdded   = 64 << 10
	addedDepth = 4
)

// EndpointOptions describe the endpoint of one server. All are required, but Memory, Streams, Logger
// and Metrics.
type EndpointOptions struct {
	Server hub.Server // watches here, and asks no other replica
	Hub    *hub.Hub
	// Handler and Describer serve here what clients of groups at other replicas ask.
	Handler   mcp.Handler
	Describer mcp.Describer
	// Settings, Sealer and Era, of the server, are for calls that wait for input here.
	Settings settings.Server
	Sealer   *requeststate.Sealer
	Era      func() spec.Era
	// Profiles returns the profiles that a request may mean.
	Profiles func(*mcp.Request) []mcp.Profile
	// Limits returns those on what clients send, as they are now: what they may send to another replica
	// is served here.
	Limits func() limits.Set

	Memory  mcp.Memory
	Streams *downstream.Streams
	Logger  *slog.Logger
	Metrics mcp.Metrics
}

// An Endpoint serves the listen requests of other replicas, which take this one for the owner
// of a profile, for one server, and what clients of their groups ask of that. To them this replica
// is a modern server, see decision 0012.
// Policy, and the limits of clients, were applied where the clients are.
type Endpoint struct {
	opts  EndpointOptions
	front *modernfront.Front
}

// NewEndpoint returns an Endpoint. The caller must call Close.
func NewEndpoint(o EndpointOptions) (*Endpoint, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Metrics = cmp.Or[mcp.Metrics](o.Metrics, mcp.NoMetrics{})
	e := &Endpoint{opts: o}
	var err error
	e.front, err = modernfront.New(modernfront.Options{
		Name: o.Server.Name(), Handler: served{o.Handler}, Describer: o.Describer, Subscriber: e, Admit: e.setProfile,
		Sealer: o.Sealer, Upstream: o.Era, Settings: o.Settings, Replicas: true,
		Memory: o.Memory, Streams: o.Streams, KeepAlive: keepAlive, Limits: limits.Set{limits.ListenTopics.Key: maxTopics}, Numbers: true,
		Logger: o.Logger, Metrics: o.Metrics,
	})
	return e, err
}

// Close ends what the endpoint has. Its streams end with the hub's subscriptions.
func (e *Endpoint) Close() { e.front.Close() }

// Serve serves a request whose envelope was opened: sender is on whose behalf it was sent.
func (e *Endpoint) Serve(w http.ResponseWriter, r *http.Request, sender mcp.Sender) {
	var in mcp.Intake // what comes of several replicas may be more than any of them has room for
	in.Use(e.opts.Memory, sender.Share)
	defer in.Close()
	m, err := e.read(w, r, &in)
	switch {
	case mcp.MayTryLater(err): // by this status the other knows that nothing was done
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "1")
		downstream.WriteError(w, http.StatusTooManyRequests, wire.ID{}, mcp.WireError(err))
	case err != nil:
		downstream.WriteError(w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%v", err))
	default:
		e.front.ServeMessage(w, r, m, sender)
	}
}

// read reads the message of a request. in has the memory for it.
func (e *Endpoint) read(w http.ResponseWriter, r *http.Request, in *mcp.Intake) (*wire.Message, error) {
	set := e.opts.Limits()
	most := max(maxBody, set.Of(limits.Body)+set.Of(limits.Capabilities)+set.Of(limits.ClientInfo)+maxAdded)
	body, err := io.ReadAll(in.From(http.MaxBytesReader(w, r.Body, most)))
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		e.opts.Metrics.Limit(e.opts.Server.Name(), "peer_body")
		e.opts.Logger.Warn("request of a replica refused: it is too long", "upstream", e.opts.Server.Name(), "limit", most)
	}
	if err != nil {
		return nil, err
	}
	m, err := wire.Parse(body, wire.Options{MaxDepth: max(wire.DefaultMaxDepth, set.Int(limits.Depth)) + addedDepth, UniqueParams: true})
	return &m, err
}

// setProfile sets the profile of a request: the one whose scope it names. So a replica of another
// configuration, or one that takes the server for another era, is refused.
func (e *Endpoint) setProfile(req *mcp.Request) error {
	want := wire.Unquote(wire.Get(wire.Get(req.Params, "_meta"), metaScope))
	for _, p := range e.opts.Profiles(req) {
		if Name(p.Scope) == want {
			req.Profile = p
			req.Profile.Share = req.Share
			return nil
		}
	}
	return mcp.Refuse(spec.CodeInvalidParams, "the profile is another one here; are all replicas configured alike?")
}

// Subscribe implements [mcp.Subscriber].
func (e *Endpoint) Subscribe(req *mcp.Request, mail *fanout.Mailbox, o mcp.SubscribeOptions) (mcp.Subscription, error) {
	o.Peer = true
	sub, err := e.opts.Hub.Subscribe(e.opts.Server, req, mail, o)
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return sub, nil
}

// served serves requests of other replicas, without what is between replicas.
type served struct{ next mcp.Handler }

// Serve implements [mcp.Handler].
func (h served) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	return h.next.Serve(ctx, withoutPeerMeta(req), c)
}
