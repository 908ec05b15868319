// Package settings answers one question: what did people say of a server that is to be heeded
// on the way to it?
//
// A [Server] is plain: texts, numbers and times, as they can be written in a configuration,
// whose keys its tags describe (see package internal/config/key). It is handed on whole, from
// the configuration or a program's options to whoever heeds a setting. The package knows
// neither how a server is reached nor who may use it, and fills in no defaults: zero, like the
// word of the default, means what it means to whoever heeds it.
package settings

import (
	"cmp"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// EraOfClient, as Era of a Server, has each client served in its own.
const EraOfClient = "client"

// A Server has the settings of one server. What it has may be shared, and nobody changes it.
type Server struct {
	Era          string              `koanf:"era" default:"auto" enum:"auto legacy modern client" doc:"legacy is 2025-11-25 and earlier, modern is 2026-07-28; auto detects it, client serves each client in its own era if the server speaks both"`
	Isolation    Isolation           `koanf:"isolation" default:"principal" enum:"principal shared request" doc:"which requests may share a session with the server: those of one principal, all, or none"`
	LogLevel     string              `koanf:"log_level" default:"debug" enum:"none debug info notice warning error critical alert emergency" doc:"log level for legacy clients that set none"`
	Experimental bool                `koanf:"experimental" default:"false" doc:"whether clients' experimental capabilities are forwarded to the server"`
	Extensions   Extensions          `koanf:"extensions" doc:"which extensions of the protocol are forwarded"`
	Tasks        Tasks               `koanf:"tasks" short:"mode" doc:"how tasks pass: auto, on, run or off, or keys"`
	ClientInfo   string              `koanf:"client_info" default:"gateway" enum:"gateway client" doc:"whether the server gets the name of the gateway, or of the client"`
	Subresources fanout.Subresources `koanf:"subresources" default:"parent" enum:"parent as-sent off" doc:"how an update of a resource below a subscribed one is reported"`
	Replicas     string              `koanf:"replicas" default:"any" command:"one" enum:"any one" doc:"which replica serves the calls of a profile: one holds it, or the one that is asked"`
	Lanes        Lanes               `koanf:"lanes" doc:"how many sessions one profile has for calls that may request input, by transport"`
	Gather       time.Duration       `koanf:"gather" default:"20ms" min:"1ms" max:"10s" doc:"input requests of a server that arrive within this time are sent together"`
	ParkedTTL    time.Duration       `koanf:"parked_ttl" default:"10m" min:"1s" max:"24h" doc:"how long a call waits for the client's responses to its input requests"`
	Roots        []string            `koanf:"roots" doc:"file URIs of the roots for the server; by default those of each client"`
	Idle         time.Duration       `koanf:"idle" default:"5m" min:"1s" max:"24h" doc:"a session with the server ends after this time without use; the process of a command that has served more than lists lasts client_idle"`
	EndDetached  bool                `koanf:"end_detached" default:"false" of:"command" doc:"whether processes that the command has started in sessions of their own end with it (on Linux); otherwise the log names them"`
	Linger       time.Duration       `koanf:"linger" default:"2s" min:"1ms" max:"1h" doc:"a resource stays subscribed this long after its last subscriber has left"`
	Synthesize   Synthesize          `koanf:"synthesize" doc:"how often a server is polled for changes that it does not report; 0s is never"`
	Timeouts     Timeouts            `koanf:"timeouts" doc:"time limits of requests to the server"`
	Quirks       Quirks              `koanf:"quirks" word:"off" names:"header-revision envelope-under-legacy-header initialize-under-modern-header accept stray-envelope null-params server-revision" enum:"on off" doc:"which deviations from the protocol are tolerated, by name; off for none"`
	// Cache is by method: the names are those of methods whose results have cache hints.
	//
	// Spec: 2026-07-28, schema, CacheableResult.
	Cache map[string]CacheHint `koanf:"cache" names:"server/discover tools/list prompts/list resources/list resources/templates/list resources/read" doc:"cache hints of results for clients, by method"`
}

// An Isolation says which requests may share an upstream session.
type Isolation string

// The isolation modes. Empty means IsolatePrincipal.
const (
	IsolatePrincipal Isolation = "principal" // those of one principal
	IsolateRequest   Isolation = "request"   // none
	IsolateNothing   Isolation = "shared"    // all
)

// Extensions configure which extensions of the protocol are forwarded.
type Extensions struct {
	Hide []string `koanf:"hide" doc:"names of extensions and experimental capabilities that are not forwarded, in either direction"`
}

// Lanes are the numbers of sessions that one profile has for calls that may request input,
// by transport.
type Lanes struct {
	Stdio int64 `koanf:"stdio" default:"1" min:"1" max:"1000" doc:"for a command: each is a process with its own state"`
	HTTP  int64 `koanf:"http" default:"4" min:"1" max:"1000" doc:"for a URL, also that of a WebSocket"`
}

// Synthesize configures how often the gateway polls for changes. Zero means never.
type Synthesize struct {
	Tools     time.Duration `koanf:"tools" default:"0s" max:"24h" doc:"the list of tools"`
	Prompts   time.Duration `koanf:"prompts" default:"0s" max:"24h" doc:"the list of prompts"`
	Resources time.Duration `koanf:"resources" default:"0s" max:"24h" doc:"the list of resources"`
	Updates   time.Duration `koanf:"updates" default:"0s" max:"24h" doc:"each resource that a client subscribes to"`
}

// Timeouts are the time limits of requests to one server.
type Timeouts struct {
	// A command has more time, because it may have to download a package first. Clients
	// wait as long.
	Connect time.Duration `koanf:"connect" default:"10s" command:"60s" min:"100ms" max:"1h" doc:"to open a session, or to start a command"`
	// Request has no default: a server may be silent as long as its client waits. What the
	// gateway asks for itself, and lists, have ListTimeout without it.
	Request time.Duration `koanf:"request" min:"100ms" max:"24h" doc:"for a response; progress restarts it; without it a call may be silent as long as its client waits, and a list 60s"`
	Max     time.Duration `koanf:"max" default:"1h" min:"100ms" max:"24h" doc:"for a response, in spite of progress"`
}

// ListTimeout bounds lists, and what the gateway asks for itself, unless Timeouts.Request
// does: a server that works on them for longer hangs.
const ListTimeout = 60 * time.Second

// Own returns the limit of a request of the gateway's own.
func (t Timeouts) Own() time.Duration { return cmp.Or(t.Request, ListTimeout) }

// Silence returns how long a server may be silent while it works on a client's request of
// method; zero for as long as the client waits. Many servers can't answer anything else
// meanwhile, not even a ping.
func (t Timeouts) Silence(method string) time.Duration {
	if spec.Lists(method) {
		return t.Own()
	}
	return t.Request
}

// KnownEra returns the era of the server; spec.Unknown if it is to be detected.
func (s *Server) KnownEra() spec.Era {
	switch s.Era {
	case spec.Legacy.String():
		return spec.Legacy
	case spec.Modern.String():
		return spec.Modern
	}
	return spec.Unknown
}

// ByClient reports whether each client is to be served in its own era by a server that speaks
// both, instead of all in the newer one.
func (s *Server) ByClient() bool { return s.Era == EraOfClient }

// Level returns the log level for legacy clients that set none; empty for no messages.
func (s *Server) Level() spec.LogLevel {
	if s.LogLevel == "none" {
		return ""
	}
	return spec.LogLevel(cmp.Or(s.LogLevel, "debug"))
}

// ForwardsClientInfo reports whether the server gets the name of the client.
func (s *Server) ForwardsClientInfo() bool { return s.ClientInfo == "client" }
