package gateway

import (
	"crypto/tls"
	"net/http"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// ServerOptions describe an MCP server that is served to clients. Exactly one of URL,
// Command and Handler is set. The zero value of each other field but Name is useful.
type ServerOptions struct {
	// Name is the last segment of the endpoint's path: letters, digits, '.', '_' and
	// '-'. Required.
	Name string

	// URL is the server's endpoint: Streamable HTTP, HTTP+SSE, or a WebSocket with
	// ws:// or wss://.
	URL string
	// Command is a program and its arguments. It is spoken to over its standard input
	// and output.
	Command []string
	// Handler is a server in this process: its endpoint is every path of Handler.
	Handler http.Handler

	// Header is sent with each request to URL.
	Header http.Header
	// UpstreamAuth has the Authorization of each request to URL. Nil means that of Header.
	UpstreamAuth *UpstreamAuth
	// Transport is that of a URL of HTTP. Empty means Streamable HTTP, and HTTP+SSE if
	// the server refuses that.
	Transport Transport
	// RoundTripper sends requests to a URL of HTTP. Nil means a connection pool that
	// follows no redirects and heeds the proxies of the environment.
	RoundTripper http.RoundTripper
	// TLS says for a URL of https or wss which certificates are accepted of the server,
	// and which are shown to it. Nil means those of the authorities that the system
	// trusts, and none. With a RoundTripper it has no effect.
	TLS *tls.Config

	// Dir is the working directory of Command. Empty means that of this process.
	Dir string
	// Env has further environment variables for Command.
	Env map[string]string
	// EndDetached ends processes that Command has started in sessions of their own when it
	// ends, on Linux. Otherwise the log names them.
	EndDetached bool
	// Remember says that what Command says of itself is kept in [Options.StateDir], and what any
	// server lists, for groups.
	Remember bool

	// Auth is [Options.Auth] for this server; nil means that, and an Auth without fields
	// that all its clients are anonymous.
	Auth *Auth
	// PublicURL is the URL by which clients know the endpoint, byte for byte. Empty means
	// [Options.PublicURL], /mcp/ and the name.
	PublicURL string

	// Tools, Prompts and Resources say what of the server clients see, and how. Policies,
	// rates and pins are about the server's own names.
	Tools, Prompts, Resources Shown
	// Prefix is what names of the server's tools and prompts begin with in groups: letters,
	// digits, - and single _, not at the end, at most 24. Empty means Name, with other characters
	// as -.
	Prefix string
	// Policy says who may do what. Nil allows everything to everybody.
	Policy *Policy
	// Rates bound the requests to the server.
	Rates Rates
	// Pin says what becomes of tools whose definitions change. Empty means PinOff.
	Pin Pin

	// Era is what the server speaks. Empty means that it is asked.
	Era Era
	// Isolation says whose requests share a session with the server, and results. Empty
	// means IsolatePrincipal.
	Isolation Isolation
	// ForwardClientInfo tells the server the client's name instead of the gateway's.
	// Clients of different names share nothing then.
	ForwardClientInfo bool
	// Experimental lets experimental capabilities of clients pass to the server.
	Experimental bool
	// HideExtensions are names of extensions and experimental capabilities that pass in
	// neither direction.
	HideExtensions []string
	// Tasks says how tasks pass. The zero value means TasksAuto.
	Tasks Tasks
	// LogLevel is what legacy clients get of the server's log messages before they set
	// a level: debug, info, notice and so on, or none. Empty means debug.
	LogLevel string
	// Subresources says how a change of a resource is reported to clients that follow
	// one above it. Empty means SubresourcesParent.
	Subresources Subresources
	// Replicas says which of several replicas serves the calls of a profile. Empty means
	// PlaceAny.
	Replicas Placement
	// Lanes is how many calls of one client that can be asked for input run at the same
	// time, where nothing else tells whom a legacy server asks. Each has a session of
	// its own. Zero means 1 for a command, and 4 otherwise.
	Lanes int
	// Gather is how long a question of a legacy server waits for others, to be sent to a
	// modern client together. Zero means 20 ms. ParkedTTL is how long a call waits for
	// the answers. Zero means 10 minutes.
	Gather, ParkedTTL time.Duration
	// Roots are file URIs that a legacy server is told are its roots. None means that
	// each client is asked.
	Roots []string
	// Idle is how long a session with the server lasts unused. Zero means 5 minutes.
	Idle time.Duration
	// Linger is how long a resource stays subscribed that nobody follows any more. Zero
	// means 2 s.
	Linger time.Duration
	// Synthesize has a legacy server looked at for changes that it does not report.
	Synthesize Synthesize
	// QuirksOff are names of deviations from the protocol that are not tolerated, of those in
	// docs/quirks.md; AllQuirks stands for all of them.
	QuirksOff []string
	// Timeouts bound the server's answers.
	Timeouts Timeouts
	// Cache says by method what clients are told about keeping results, and whether the
	// gateway keeps them itself: server/discover, tools/list, prompts/list,
	// resources/list, resources/templates/list and resources/read.
	Cache map[string]CacheHint
}

// settings returns what is to be heeded on the way to the server: of each of these options there
// is this one copy.
func (s *ServerOptions) settings() settings.Server {
	return settings.Server{
		Era:          string(s.Era),
		Isolation:    settings.Isolation(s.Isolation),
		LogLevel:     s.LogLevel,
		Experimental: s.Experimental,
		Extensions:   settings.Extensions{Hide: s.HideExtensions},
		Tasks:        s.Tasks.settings(),
		ClientInfo:   clientInfo(s.ForwardClientInfo),
		Subresources: fanout.Subresources(s.Subresources),
		Replicas:     string(s.Replicas),
		Lanes:        settings.Lanes{Stdio: int64(s.Lanes), HTTP: int64(s.Lanes)},
		Gather:       s.Gather,
		ParkedTTL:    s.ParkedTTL,
		Roots:        s.Roots,
		Idle:         s.Idle,
		EndDetached:  s.EndDetached,
		Linger:       s.Linger,
		Synthesize:   settings.Synthesize(s.Synthesize),
		Timeouts:     settings.Timeouts(s.Timeouts),
		Quirks:       quirksOff(s.QuirksOff),
		Cache:        cacheHints(s.Cache),
	}
}

// AllQuirks stands for all deviations from the protocol that are otherwise tolerated.
const AllQuirks = "all"

func quirksOff(names []string) settings.Quirks {
	if slices.Contains(names, AllQuirks) {
		return settings.NoQuirks()
	}
	off := make(settings.Quirks, len(names))
	for _, name := range names {
		off[name] = "off"
	}
	return off
}

func clientInfo(forwarded bool) string {
	if forwarded {
		return "client"
	}
	return "gateway"
}

func cacheHints(from map[string]CacheHint) map[string]settings.CacheHint {
	hints := make(map[string]settings.CacheHint, len(from))
	for method, h := range from {
		hint := settings.CacheHint{TTL: h.TTL, Keep: &h.Keep}
		if h.Public {
			hint.Scope = spec.ScopePublic
		}
		hints[method] = hint
	}
	return hints
}

// A Transport is how a URL of HTTP is spoken to.
type Transport string

// The transports over HTTP.
const (
	TransportHTTP Transport = "http" // Streamable HTTP
	TransportSSE  Transport = "sse"  // HTTP+SSE of 2024-11-05
)

// An Era is a group of revisions of the protocol.
type Era string

// The eras.
const (
	Legacy Era = "legacy" // 2025-11-25 and earlier
	Modern Era = "modern" // 2026-07-28 and later
	// EraOfClient means that the server is asked, and serves each client in the client's era
	// if it speaks both; else, and if Era is empty, it serves all in the one that it was
	// found to speak, the newer of both.
	EraOfClient Era = "client"
)

// An Isolation says which requests share a session with a server.
type Isolation string

// The isolations.
const (
	IsolatePrincipal Isolation = "principal" // those of one principal
	IsolateRequest   Isolation = "request"   // none
	IsolateNothing   Isolation = "shared"    // all
)

// Subresources says what becomes of a change of a resource below one that is followed.
type Subresources string

// The ways to report changes of such resources.
const (
	SubresourcesParent Subresources = "parent"  // as one of the resource that is followed
	SubresourcesAsSent Subresources = "as-sent" // under its own URI
	SubresourcesOff    Subresources = "off"     // not at all
)

// Tasks say what becomes of tasks between clients and a server.
type Tasks struct {
	Mode TaskMode
	// TTL is how long a task of a server of 2025-11-25 is held for a client of 2026-07-28. Zero
	// means an hour.
	TTL time.Duration
	// CallOptional has tools of a server of 2025-11-25 that can run as tasks, but need not, called
	// for clients of 2026-07-28 that hold tasks.
	CallOptional bool
}

// A TaskMode says who holds tasks, and for whom tools are run that run as tasks alone.
type TaskMode string

// The modes. Empty means TasksAuto.
const (
	TasksAuto TaskMode = "auto" // clients of 2026-07-28 hold tasks, and for others tools are run
	TasksOn   TaskMode = "on"   // clients of 2025-11-25 hold tasks, too
	TasksRun  TaskMode = "run"  // tools are run
	TasksOff  TaskMode = "off"  // tools are not run either
)

func (m TaskMode) valid() bool {
	return m == "" || m == TasksAuto || m == TasksOn || m == TasksRun || m == TasksOff
}

func (t Tasks) settings() settings.Tasks {
	out := settings.Tasks{Mode: settings.TaskMode(t.Mode), TTL: t.TTL, Optional: settings.OptionalTask}
	if t.CallOptional {
		out.Optional = settings.OptionalCall
	}
	return out
}

// Synthesize says how often a server is looked at for changes. Zero means never.
type Synthesize struct {
	Tools     time.Duration
	Prompts   time.Duration
	Resources time.Duration
	Updates   time.Duration // of each resource that is followed
}

// Timeouts of a server's answers.
type Timeouts struct {
	// Connect bounds how long it takes to reach the server, to start a command included.
	// Zero means 10 s, and 60 s for a command.
	Connect time.Duration
	// Request bounds an answer; progress starts it anew. Zero means as long as the client
	// waits, and 60 s for a list.
	Request time.Duration
	// Max bounds an answer whatever the progress. Zero means 1 h.
	Max time.Duration
}

// A CacheHint says how long results of a method stay fresh.
type CacheHint struct {
	TTL    time.Duration // zero means that results are not to be kept
	Public bool          // caches may give a result to other users
	Keep   bool          // the gateway keeps public results, too
}
