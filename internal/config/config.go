package config

import "time"

// A Config is everything that was configured, defaults filled in. It is read
// only once Load has returned it, and may be shared between goroutines.
type Config struct {
	// Listen is the host:port of the endpoints.
	Listen string `koanf:"listen"`
	// Admin is the host:port of metrics and health; empty switches them off.
	Admin string `koanf:"admin"`
	// AllowAnonymous lets Listen and Admin be reached from beyond this
	// machine although clients are not authenticated.
	AllowAnonymous bool `koanf:"allow_anonymous"`
	// AllowedOrigins are the Origin headers that browsers may send, beyond
	// the loopback ones; each is scheme://host[:port].
	AllowedOrigins []string `koanf:"allowed_origins"`
	// AllowedHosts are Host headers, without port, accepted on a loopback
	// listener beyond the loopback names.
	AllowedHosts []string `koanf:"allowed_hosts"`

	// WriteTimeout is how long a stream may refuse to take bytes before it
	// counts as stale. KeepAlive is the pause between comments on an open
	// stream. Drain bounds the shutdown.
	WriteTimeout time.Duration `koanf:"write_timeout"`
	KeepAlive    time.Duration `koanf:"keep_alive"`
	Drain        time.Duration `koanf:"drain"`

	Limits Limits `koanf:"limits"`
	Log    Log    `koanf:"log"`

	// Servers in the order of the file; disabled ones included.
	Servers []Server `koanf:"-"`
}

// Limits bound what clients and servers can make the process hold. All are
// positive.
type Limits struct {
	Body            int64 `koanf:"body"`             // bytes of a client's request
	Depth           int64 `koanf:"depth"`            // nested objects and arrays in a message
	UpstreamMessage int64 `koanf:"upstream_message"` // bytes of one message of a server
	Sessions        int64 `koanf:"sessions"`         // sessions per server, all profiles together
	Streams         int64 `koanf:"streams"`          // open subscriptions/listen requests in all
	ListenTopics    int64 `koanf:"listen_topics"`    // resources one listen stream may name
}

// Log says what is logged and for whom.
type Log struct {
	Level  string `koanf:"level"`  // debug, info, warn or error
	Format string `koanf:"format"` // auto, text or json
}

// A Server is one upstream. Exactly one of Builtin, Command and URL is set.
type Server struct {
	Name     string `koanf:"-"`
	Disabled bool   `koanf:"disabled"`

	Builtin string            `koanf:"builtin"`
	Command string            `koanf:"command"`
	Args    []string          `koanf:"args"`
	Env     map[string]string `koanf:"env"`
	Cwd     string            `koanf:"cwd"`
	URL     string            `koanf:"url"`
	Headers map[string]string `koanf:"headers"`
	// Type is stdio or http where the user wrote it; it has been found to
	// agree with the transport and says nothing more.
	Type string `koanf:"type"`

	Era          string               `koanf:"era"`          // auto or legacy
	Isolation    string               `koanf:"isolation"`    // principal, shared or request
	ClientInfo   string               `koanf:"client_info"`  // gateway or client
	Subresources string               `koanf:"subresources"` // parent, as-sent or off
	Idle         time.Duration        `koanf:"idle"`         // a session unused this long is ended
	Linger       time.Duration        `koanf:"linger"`       // a topic nobody wants is kept this long
	Timeouts     Timeouts             `koanf:"timeouts"`
	Cache        map[string]CacheHint `koanf:"cache"` // by method

	// written holds the arguments as the user wrote them, before variables
	// were expanded: what may be shown to people.
	written []string
}

// Timeouts of one server's requests.
type Timeouts struct {
	Connect time.Duration `koanf:"connect"` // to open a session, or start a command
	Request time.Duration `koanf:"request"` // for an answer; progress restarts it
	Max     time.Duration `koanf:"max"`     // for an answer, whatever progress is made
}

// A CacheHint is what clients are told about keeping a method's results.
//
// Spec: 2026-07-28, schema, CacheableResult.
type CacheHint struct {
	TTL   time.Duration `koanf:"ttl"`
	Scope string        `koanf:"scope"` // private or public
}
