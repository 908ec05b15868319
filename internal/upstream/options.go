package upstream

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Defaults of Options.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultMaxTimeout     = time.Hour
	DefaultLinger         = 2 * time.Second
)

// Depth is how deeply a message of a server may nest, unless limits.Depth allows more. Trees in results
// nest more than what clients send, and what reads them here takes little of the stack for a level.
const Depth = 1000

// Options configure one server, as far as the backs of both eras have the same options. For
// durations and numbers zero means the default; negative is an error.
type Options struct {
	// Name is the server's name in the configuration, which log messages and errors
	// contain. Required.
	Name string

	// URL is the server's MCP endpoint over Streamable HTTP; empty for other transports.
	URL string
	// Headers are added to every HTTP request; they may be credentials. They can't replace
	// headers of the protocol.
	Headers http.Header
	// Renewed replaces values of Headers later; nil for never.
	Renewed *Renewed
	// Credentials provide the Authorization header of each HTTP request; nil means that of
	// Headers.
	Credentials Credentials
	// RoundTripper sends HTTP requests; nil means a transport of the back's own. It must
	// not follow redirects, because credentials may be sent to URL's origin only.
	RoundTripper http.RoundTripper
	// TLS is for an https or wss URL, unless there is a RoundTripper. Nil means the
	// authorities that the system trusts.
	TLS *tls.Config

	// ClientInfo is the gateway's name and version, an Implementation object. Required.
	ClientInfo json.RawMessage

	// Settings are what is to be heeded on the way to the server.
	Settings settings.Server
	// Subscribes is how many subscribes a second, and as many unsubscribes, each share may
	// cause on average. Those of 10 s may come at once. Zero means the default of
	// limits.SubscribesEach.
	Subscribes int
	// Limits are those of tasks that are held for clients, and of the depth of messages. Those that it
	// lacks have their defaults.
	Limits limits.Set
	// Sealer makes the ids of such tasks; nil means one of the back's own.
	Sealer *requeststate.Sealer
	// MaxMessage limits a message of the server, in bytes.
	MaxMessage int

	Logger  *slog.Logger // nil discards
	Metrics mcp.Metrics  // nil counts nothing
	// Quirks are told what the server does against the protocol; nil tolerates it untold.
	Quirks  *quirks.Recorder
	Changes mcp.Changes // gets changes; nil ignores them
	// Losses remember whose state is lost, beyond the life of a back; nil for its life.
	Losses *Losses
	// Observers are told of requests of the gateway's own; nil tells nobody.
	Observers *trace.Observers
	// Doubt is called with the reason if the server seems to be of the other era. It must
	// not block; it may be nil.
	Doubt func(why string)

	place   place        // of URL; set by Fill
	parsing wire.Options // of the server's messages; set by Fill
}

// Check returns an error for the first invalid option. own says what the back's own options
// lack; "" if nothing.
func (o *Options) Check(own string) error {
	set := &o.Settings
	switch {
	case o.Name == "":
		return errors.New("no Name")
	case len(o.ClientInfo) == 0:
		return fmt.Errorf("server %q: no ClientInfo", o.Name)
	case set.Timeouts.Connect < 0, set.Timeouts.Request < 0, set.Timeouts.Max < 0:
		return fmt.Errorf("server %q: negative time-out", o.Name)
	case set.Linger < 0, o.Subscribes < 0, o.MaxMessage < 0:
		return fmt.Errorf("server %q: negative limit", o.Name)
	case set.Subresources != "" && !set.Subresources.Valid():
		return fmt.Errorf("server %q: unknown Subresources %q", o.Name, set.Subresources)
	case o.URL != "" && !absolute(o.URL): // not quoted: it may contain a secret
		return fmt.Errorf("server %q: URL is not an absolute http or https URL", o.Name)
	case own != "":
		return fmt.Errorf("server %q: %s", o.Name, own)
	}
	return nil
}

// absolute reports whether text is an absolute URL of HTTP.
func absolute(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Fill sets the defaults.
func (o *Options) Fill(era spec.Era) {
	set := &o.Settings
	set.Timeouts.Connect = cmp.Or(set.Timeouts.Connect, DefaultConnectTimeout)
	set.Timeouts.Max = max(cmp.Or(set.Timeouts.Max, DefaultMaxTimeout), set.Timeouts.Request)
	set.Linger = cmp.Or(set.Linger, DefaultLinger)
	set.Subresources = cmp.Or(set.Subresources, fanout.SubresourcesParent)
	o.place = placeOf(o.URL)
	o.Subscribes = cmp.Or(o.Subscribes, int(limits.SubscribesEach.Default))
	o.parsing.MaxDepth = max(o.Limits.Int(limits.Depth), Depth)
	o.MaxMessage = cmp.Or(o.MaxMessage, int(limits.UpstreamMessage.Default))
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Logger = o.Logger.With("upstream", o.Name, "era", era.String())
	o.Metrics = cmp.Or[mcp.Metrics](o.Metrics, mcp.NoMetrics{})
	o.Changes = cmp.Or[mcp.Changes](o.Changes, noChanges{})
	if o.Losses == nil {
		o.Losses = NewLosses()
	}
	if o.Doubt == nil {
		o.Doubt = func(string) {}
	}
}

// Tasks returns the tasks of the server, without any.
func (o *Options) Tasks() (*Tasks, error) {
	sealer := o.Sealer
	if sealer == nil {
		var err error
		if sealer, err = requeststate.NewSealer(); err != nil {
			return nil, err
		}
	}
	return NewTasks(TasksOptions{
		Server: o.Name, Sealer: sealer, Limits: o.Limits, Patience: o.Settings.Timeouts.Own(), Logger: o.Logger, Metrics: o.Metrics,
	}), nil
}

// noChanges is the default of Changes, without subscribers.
type noChanges struct{}

func (noChanges) Publish(fanout.Event)     {}
func (noChanges) Wanted(fanout.Topic) bool { return false }
func (noChanges) End(fanout.Topic, error)  {}

// BaseHeader returns the headers of every request: the configured ones, and those of the
// protocol, which replace configured ones.
//
// Spec: 2025-11-25, basic/transports, Sending Messages to the Server; 2026-07-28,
// basic/transports/streamable-http, Sending Messages.
func (o *Options) BaseHeader() http.Header {
	h := o.Headers.Clone()
	if h == nil {
		h = make(http.Header, 4)
	}
	maps.DeleteFunc(h, func(name string, _ []string) bool { return ofProtocol(name) })
	h.Set("Accept", spec.AcceptBoth)
	h.Set("Content-Type", spec.TypeJSON)
	return h
}

// parse parses a message of the server, as strictly as those of clients, which would have to refuse a
// forwarded message. It counts one that nests too deeply.
func (o *Options) parse(text []byte) (wire.Message, error) {
	m, err := wire.Parse(text, o.parsing)
	if err != nil && wire.TooDeep(err) {
		o.Metrics.Limit(o.Name, limits.Depth.Key)
	}
	return m, err
}

// Drop counts a message that was not delivered.
func (o *Options) Drop(what string) { o.Metrics.Dropped(o.Name, what) }

// BeyondLimit counts and logs a message that is too long to be read.
func (o *Options) BeyondLimit(limit int) {
	o.Drop("too long")
	o.Metrics.Limit(o.Name, limits.UpstreamMessage.Key)
	o.Logger.Warn("skipping message of server beyond the limit", "bytes", limit)
}
