package upstream

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Defaults of Options.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultRequestTimeout = 60 * time.Second
	DefaultMaxTimeout     = 30 * time.Minute
	DefaultLinger         = 2 * time.Second
)

// Options describe one server and how to treat it, as far as the backs of both eras do it
// alike. For durations and numbers zero means the default; negative is an error.
type Options struct {
	// Name is the server's name in the configuration: it stands in every message
	// to people and in every error. Required.
	Name string

	// URL is the server's MCP endpoint over Streamable HTTP; empty if the server is not
	// reached over HTTP.
	URL string
	// Headers go with every HTTP request, credentials among them. They can't
	// replace the headers the protocol defines.
	Headers http.Header
	// Credentials have the Authorization of each HTTP request; nil means that of Headers.
	Credentials Credentials
	// RoundTripper sends HTTP requests; nil means a transport of the back's own.
	// It must not follow redirects: credentials go to URL's origin alone.
	RoundTripper http.RoundTripper
	// TLS is for a URL of https or wss, unless there is a RoundTripper. Nil means the
	// authorities that the system trusts.
	TLS *tls.Config

	// ClientInfo is the gateway's own name and version, an Implementation object.
	// Required.
	ClientInfo json.RawMessage
	// HideExtensions are names of extensions and experimental capabilities that
	// cross in neither direction.
	HideExtensions []string

	Timeouts Timeouts
	// Linger is how long an upstream subscription outlives its last subscriber.
	Linger time.Duration
	// Subscribes is how many subscribes a second, and as many unsubscribes, each
	// share may cause in the long run. Those of 10 s may come at once. Zero means the
	// default of limits.SubscribesEach.
	Subscribes int
	// MaxMessage bounds one message of the server, in bytes.
	MaxMessage int
	// Subresources says what becomes of an update for a URI below one that is
	// wanted. Empty means [fanout.SubresourcesParent].
	Subresources fanout.Subresources

	Logger  *slog.Logger // nil discards
	Metrics mcp.Metrics  // nil counts nothing
	Changes mcp.Changes  // is told of changes; nil tells nobody
	// Doubt is called when the server may have become one of the other era, with what it
	// did that says so. It must not block; nil means nobody wants to know.
	Doubt func(why string)
}

// Timeouts bound the waiting for a server. Zero means the default.
type Timeouts struct {
	Connect time.Duration // reaching the server, and its answer to the first request
	Request time.Duration // one request; progress starts it anew
	Max     time.Duration // one request, whatever progress it makes
}

// Check reports the first fault of o. own is what the back's own options lack, "" for
// nothing.
func (o *Options) Check(own string) error {
	switch {
	case o.Name == "":
		return errors.New("no Name")
	case len(o.ClientInfo) == 0:
		return fmt.Errorf("server %q: no ClientInfo", o.Name)
	case o.Timeouts.Connect < 0, o.Timeouts.Request < 0, o.Timeouts.Max < 0:
		return fmt.Errorf("server %q: negative time-out", o.Name)
	case o.Linger < 0, o.Subscribes < 0, o.MaxMessage < 0:
		return fmt.Errorf("server %q: negative limit", o.Name)
	case o.Subresources != "" && !o.Subresources.Valid():
		return fmt.Errorf("server %q: unknown Subresources %q", o.Name, o.Subresources)
	case o.URL != "" && !absolute(o.URL): // not repeated: it may hold a secret
		return fmt.Errorf("server %q: URL is no absolute http or https URL", o.Name)
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

// Fill replaces zero values by their defaults.
func (o *Options) Fill(era spec.Era) {
	o.Timeouts.Connect = cmp.Or(o.Timeouts.Connect, DefaultConnectTimeout)
	o.Timeouts.Request = cmp.Or(o.Timeouts.Request, DefaultRequestTimeout)
	o.Timeouts.Max = max(cmp.Or(o.Timeouts.Max, DefaultMaxTimeout), o.Timeouts.Request)
	o.Linger = cmp.Or(o.Linger, DefaultLinger)
	o.Subscribes = cmp.Or(o.Subscribes, int(limits.SubscribesEach.Default))
	o.MaxMessage = cmp.Or(o.MaxMessage, int(limits.UpstreamMessage.Default))
	o.Subresources = cmp.Or(o.Subresources, fanout.SubresourcesParent)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With("upstream", o.Name, "era", era.String())
	if o.Metrics == nil {
		o.Metrics = mcp.NoMetrics{}
	}
	if o.Changes == nil {
		o.Changes = noChanges{}
	}
	if o.Doubt == nil {
		o.Doubt = func(string) {}
	}
}

// noChanges is told of changes where nobody is: nothing is wanted.
type noChanges struct{}

func (noChanges) Publish(fanout.Event)     {}
func (noChanges) Wanted(fanout.Topic) bool { return false }
func (noChanges) End(fanout.Topic, error)  {}

// BaseHeader returns what goes with every request: the configured headers without those
// that the protocol defines, and over them what kinds of body are sent and taken.
//
// Spec: 2025-11-25, basic/transports, Sending Messages to the Server; 2026-07-28,
// basic/transports/streamable-http, Sending Messages.
func (o *Options) BaseHeader() http.Header {
	h := o.Headers.Clone()
	if h == nil {
		h = make(http.Header, 4)
	}
	for name := range h {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "Mcp-") {
			delete(h, name)
		}
	}
	for _, name := range []string{spec.HeaderLastEventID, "Host", "Content-Length", "Accept-Encoding"} {
		h.Del(name)
	}
	h.Set("Accept", spec.AcceptBoth)
	h.Set("Content-Type", spec.TypeJSON)
	return h
}

// Drop counts a message that reached nobody.
func (o *Options) Drop(what string) { o.Metrics.Dropped(o.Name, what) }

// BeyondLimit counts and logs a message that is not read.
func (o *Options) BeyondLimit(limit int) {
	o.Drop("too long")
	o.Metrics.Limit(o.Name, limits.UpstreamMessage.Key)
	o.Logger.Warn("skipping message of server beyond the limit", "bytes", limit)
}
