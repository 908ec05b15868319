// Package layers holds what is true of the tree as a whole: which
// package may import which. See TestLayers.
package layers

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/mcpbridge/mcpbridge"

// root is the tree that the tests read. Each goes there by [testing.T.Chdir]: what TestMain
// opens, and where it goes, is unknown to the go command, which would take a result of
// another tree for one of this.
const root = "../../.."

// The groups of the table. A package imports what lies below it, never a
// neighbour of its own row.
var (
	bottom = []string{"index", "internal/wire", "internal/observation/trace", "internal/spec", "internal/sse", "internal/fanout", "internal/http1", "internal/budget", "internal/redact", "internal/limits", "internal/wake", "internal/certs", "internal/settings", "internal/status", "internal/quirks"}
	waist  = []string{"internal/mcp", "internal/transport"}
	eras   = []string{"legacy/front", "legacy/back", "modern/front", "modern/back", "modern/protocol"}
	// commands are what the commands are made of.
	commands = []string{"cmd/mcpbridge/internal/client", "cmd/mcpbridge/internal/clients", "cmd/mcpbridge/internal/console", "cmd/mcpbridge/internal/install", "cmd/mcpbridge/internal/options", "cmd/mcpbridge/internal/output", "cmd/mcpbridge/internal/reload", "cmd/mcpbridge/internal/report", "cmd/mcpbridge/internal/system"}

	// configParts is what the keys of every subject are made of.
	configParts = []string{"internal/config/key", "internal/config/value"}

	top = []string{"gateway/internal/router", "internal/observation/admin", "internal/config", "internal/observation/metrics"}
)

// layers says which packages of this module each package may import. Changing
// it is a commit of its own with a reason. A package that is not named here
// may not exist.
var layers = map[string][]string{
	"cmd/mcpbridge": slices.Concat(commands, top, waist, bottom, []string{"gateway", "internal/observation/accesslog", "internal/observation/admin/live", "internal/trust/auth", "internal/observation/telemetry", "internal/cmdhook", "internal/config/layer", "internal/config/value", "internal/server", "internal/argv", "internal/origin", "internal/release", "internal/notebook", "internal/remember", "internal/guard", "internal/hostfile", "internal/httpserver", "internal/linebuffer", "internal/trust/audit", "internal/trust/login", "internal/trust/pin"}),
	// What commands do, without flags: reading replies as a client, through a gateway of its own
	// where that is needed, and telling the audit log who accepts tools; writing for people, what
	// was found out about a server and what a configuration serves. Misspelt arguments are compared
	// as misspelt keys are.
	"cmd/mcpbridge/internal/client": {"gateway", "internal/config", "internal/config/key", "internal/httpserver", "internal/trust/audit", "internal/mcp", "internal/spec", "internal/sse", "internal/transport", "internal/trust/pin", "internal/upstream", "internal/wire", "modern/protocol", "cmd/mcpbridge/internal/output"},
	// What published clients send first, and whether a server takes it.
	"cmd/mcpbridge/internal/clients": {"internal/spec", "internal/sse", "internal/transport", "internal/wire", "cmd/mcpbridge/internal/output"},
	"cmd/mcpbridge/internal/output":  {"internal/config", "internal/linebuffer", "internal/redact"}, // the log
	"cmd/mcpbridge/internal/report":  {"internal/cmdhook", "internal/config", "internal/hostfile", "internal/status", "internal/mcp", "internal/names", "internal/quirks", "internal/replicas", "internal/server", "internal/settings", "internal/spec", "internal/trust/policy", "internal/wire", "modern/protocol", "cmd/mcpbridge/internal/output"},
	// What a configuration says, for the public package: only this one has both.
	"cmd/mcpbridge/internal/options": {"gateway", "gateway/replicas/nats", "gateway/replicas/redis", "internal/certs", "internal/config", "internal/config/value", "internal/replicas", "internal/settings"},
	// The memory of the process, which is one of the limits, and its service manager.
	"cmd/mcpbridge/internal/system": {"internal/config", "internal/config/value"},
	// What SIGHUP means, and what became of reading the configuration again.
	"cmd/mcpbridge/internal/reload": {"internal/trust/audit", "internal/config", "internal/config/layer", "internal/config/value", "internal/limits"}, // each attempt has an audit record
	// What becomes of desktop clients' files.
	"cmd/mcpbridge/internal/install": {"internal/config/value", "internal/hostfile", "cmd/mcpbridge/internal/output"},
	// What the admin address of another process shows, in a terminal.
	"cmd/mcpbridge/internal/console": {"internal/observation/admin/live", "internal/status", "cmd/mcpbridge/internal/output"},

	"gateway/internal/router": slices.Concat(eras, waist, bottom, []string{"gateway/internal/access", "internal/names", "internal/trust/audit", "internal/trust/auth", "gateway/internal/admission", "gateway/internal/cache", "internal/detect", "internal/downstream", "gateway/internal/forward", "gateway/internal/group", "gateway/internal/hub", "internal/origin", "gateway/internal/overview", "gateway/internal/owner", "internal/peer", "gateway/internal/profile", "internal/replicas", "internal/replicas/evict", "internal/replicas/handover", "gateway/internal/source", "internal/requeststate", "gateway/internal/sockets", "internal/upstream", "gateway/internal/visit"}),
	// Where a request is answered: the router asks once for each.
	"gateway/internal/forward": slices.Concat(waist, bottom, []string{"gateway/internal/admission", "gateway/internal/sockets", "internal/downstream", "internal/peer", "internal/replicas", "internal/replicas/handover", "legacy/front"}),
	// Which subscribers receive a change: the same for the backs of both eras.
	"gateway/internal/hub": slices.Concat(waist, bottom, []string{"gateway/internal/cache"}),
	// What comes before a request is looked at: which page may have sent it.
	"internal/origin": {"internal/downstream", "internal/spec", "internal/wire"},
	// What the admin address shows of a gateway, and asks it for.
	"gateway/internal/overview":  slices.Concat(waist, bottom, []string{"gateway/internal/group", "gateway/internal/hub", "internal/names", "internal/replicas", "internal/trust/policy"}),
	"internal/observation/admin": slices.Concat(eras, waist, bottom, []string{"internal/observation/admin/live"}),
	// What passes while somebody looks.
	"internal/observation/admin/live": {"internal/mcp", "internal/redact", "internal/observation/trace", "internal/wire"},
	"internal/config":                 slices.Concat(bottom, configParts, []string{"internal/config/layer", "internal/config/server", "internal/hostfile", "internal/names", "internal/replicas"}),
	// The tree of keys and the mistakes in them; what values look like, what they refer to,
	// and what of them is secret; what files, the environment and flags have.
	"internal/config/key":   {"internal/hostfile", "internal/limits"},
	"internal/config/value": {"internal/config/key", "internal/hostfile"},
	"internal/config/layer": slices.Concat(configParts, []string{"internal/hostfile"}),
	// The keys of one server: what they are, and which mistakes there are in them.
	"internal/config/server":       slices.Concat(configParts, []string{"internal/certs", "internal/hostfile", "internal/names", "internal/settings", "internal/spec", "internal/trust/policy"}),
	"internal/observation/metrics": slices.Concat(eras, waist, bottom),

	// The halves of an era meet in the gateway, or in a test. What both spell alike lies
	// below them.
	"legacy":       nil,
	"legacy/front": slices.Concat(waist, bottom, []string{"legacy/eventstream", "legacy/projection", "internal/downstream"}),
	"legacy/back":  slices.Concat(waist, bottom, []string{"internal/subscribe", "internal/upstream", "legacy/link", "legacy/poll", "legacy/pool", "legacy/relay", "legacy/tasks", "legacy/watch"}),
	// What a client of a session has not read yet.
	"legacy/eventstream": {"internal/downstream", "internal/fanout", "internal/limits", "internal/mcp", "internal/spec", "internal/wake", "internal/wire"},
	// What a profile is subscribed to upstream.
	"legacy/watch": {"internal/mcp", "internal/fanout", "internal/wire", "internal/wake", "internal/subscribe", "internal/upstream"},
	"legacy/poll":  slices.Concat(waist, bottom, []string{"internal/upstream", "legacy/watch"}),
	"legacy/pool":  slices.Concat(waist, bottom, []string{"internal/upstream"}),
	"legacy/tasks": {"internal/mcp", "internal/quirks", "internal/spec", "internal/transport", "internal/upstream", "internal/wake", "internal/wire"},
	"legacy/link":  slices.Concat(waist, bottom, []string{"internal/upstream"}),
	"legacy/relay": {"internal/mcp", "internal/observation/trace", "internal/transport", "internal/upstream", "internal/wake", "internal/wire", "internal/spec", "legacy/link"},
	"modern":       nil,
	"modern/front": slices.Concat(waist, bottom, []string{"modern/protocol", "internal/downstream", "internal/requeststate"}),
	"modern/back":  slices.Concat(waist, bottom, []string{"modern/protocol", "internal/subscribe", "internal/upstream", "modern/watch"}),
	// Which listen streams a profile has open upstream.
	"modern/watch":    {"internal/mcp", "internal/transport", "internal/fanout", "internal/spec", "internal/wire", "internal/wake", "internal/subscribe", "internal/upstream"},
	"modern/protocol": {"internal/http1", "internal/mcp", "internal/wire", "internal/spec"},

	// How one server is reached: the same for the backs of both eras.
	// The ids of tasks are made as requestStates are.
	"internal/upstream": slices.Concat(waist, bottom, []string{"internal/requeststate"}),

	// What others name is fetched with care, whoever fetches: logins, and the keys of tokens.
	"internal/trust/fetch": {"internal/transport"},
	// How the gateway gets the credentials that the backs send, and has them hidden: it
	// knows no messages. A key that signs is read as other keys are.
	"internal/trust/login": {"internal/certs", "internal/trust/fetch", "internal/mcp", "internal/redact", "internal/spec", "internal/upstream", "internal/wire"},

	// Logins of principals at servers, and the pages on which they are made: they are kept at the
	// engine of the replicas, where there is one, and verify nobody themselves.
	"internal/trust/userlogin": {"internal/mcp", "internal/redact", "internal/replicas", "internal/spec", "internal/trust/fetch", "internal/trust/login", "internal/upstream"},

	// What clients bring back: small, since fuzzing builds it apart.
	"internal/requeststate": nil,

	// How answers reach clients: the same for the fronts of both eras.
	"internal/downstream": slices.Concat(waist, bottom),

	// Who waits for which changes: the same for the backs of both eras.
	"internal/subscribe": {"internal/mcp", "internal/fanout", "internal/limits", "internal/wake", "internal/upstream"},

	// How requests reach another replica: it does not know which replica holds what.
	"internal/peer": {"internal/downstream", "internal/http1", "internal/mcp", "internal/replicas", "internal/spec", "internal/transport"},

	// Which era a server is of: the gateway has a Detector for a back.
	"internal/detect": slices.Concat(waist, bottom),

	// Who sent a request: the gateway asks it for each, and knows of no kind of credential.
	"internal/trust/auth": {"internal/trust/fetch", "internal/mcp", "internal/spec", "internal/wire"},

	// Who may do what: decisions, records and digests, each by itself, and what stands
	// before a back and has them done.
	"internal/trust/policy":   {"internal/mcp", "internal/spec", "internal/wire"},
	"internal/names":          {"internal/mcp", "internal/observation/trace", "internal/spec", "internal/trust/policy", "internal/wire"},
	"internal/trust/audit":    {"internal/mcp", "internal/wake", "internal/wire"},
	"internal/trust/pin":      {"internal/mcp", "internal/wire"},
	"gateway/internal/access": slices.Concat(waist, bottom, []string{"internal/names", "internal/trust/audit", "internal/trust/pin", "internal/trust/policy"}),

	// Results that are kept: the gateway puts a cache before a back.
	"gateway/internal/cache": slices.Concat(waist, bottom),
	// Groups are made of members, by an interface: neither fronts, backs nor the hub.
	"gateway/internal/group/owners": {"internal/mcp", "internal/spec", "internal/trust/policy", "internal/wire"},
	"gateway/internal/group":        slices.Concat(waist, bottom, []string{"gateway/internal/group/owners", "gateway/internal/group/watch", "internal/names", "internal/requeststate", "internal/trust/policy"}),
	// What clients of a group follow: each profile has a book of subscriptions, as at a server.
	"gateway/internal/group/watch": slices.Concat(waist, bottom, []string{"internal/subscribe", "internal/upstream"}),

	// Who shares what at a server: the gateway asks before a front goes on.
	"gateway/internal/profile": slices.Concat(waist, bottom),

	// Who sent a request, how many are served, against whose share they count, until when a server
	// is served, and until when what is open may go on: the gateway asks before anything else.
	"gateway/internal/admission": slices.Concat(waist, bottom, []string{"internal/downstream", "internal/trust/audit", "internal/trust/auth"}),
	// The WebSockets of clients: their places, and their end.
	"gateway/internal/sockets": {"internal/downstream", "internal/limits", "internal/mcp"},

	// Where the users of clients log in to servers: the gateway puts it before a back.
	"gateway/internal/visit": {"internal/mcp", "internal/spec", "internal/wire"},

	// Whose is what servers hand out: the gateway puts a guard before a back.
	"gateway/internal/owner": {"internal/mcp", "internal/wire", "internal/spec", "internal/budget", "internal/requeststate"},

	// What changes from revision to revision, as functions: no I/O, no sessions.
	"legacy/projection": {"internal/mcp", "internal/wire", "internal/spec", "internal/quirks"},

	"internal/mcp":       bottom,
	"internal/transport": bottom,

	// What servers said in earlier runs: files alone.
	"internal/remember": {"internal/mcp", "internal/spec"},

	// The configuration files of other programs, read and written as bytes.
	"internal/hostfile": nil,

	// Traces of what is observed: only who puts the program together knows of it.
	"internal/observation/accesslog": {"internal/observation/trace", "internal/mcp", "internal/linebuffer", "internal/redact", "internal/wire"},
	"internal/observation/telemetry": {"internal/observation/trace", "internal/mcp", "internal/spec", "internal/wire", "internal/redact"},
	// What is observed of requests: below all that tell of it.
	"internal/observation/trace": {"internal/wire"},

	"index":           nil,
	"internal/wire":   nil,
	"internal/spec":   nil,
	"internal/sse":    nil,
	"internal/fanout": {"internal/wake"},
	"internal/http1":  nil,
	// Certificates, keys and authorities in files: for listeners, and for servers.
	"internal/certs": nil,
	// Goroutines wait at every layer, to be woken or for a time: it lies below the bottom.
	"internal/wake": nil,
	// How much memory is left, and for whom.
	"internal/budget": nil,

	// Which replica holds what. Engines differ in where they keep it: each by itself, over
	// what they have in common; tests have one in memory.
	"internal/replicas":        nil,
	"internal/replicas/member": {"internal/replicas", "internal/wake"},
	// Who watches a profile upstream: it stands before a back, and opens others, of which it
	// knows the interface alone. Other replicas reach it by a modern front before the hub, which
	// seals the state of calls that wait for input.
	"gateway/internal/source": {"gateway/internal/hub", "internal/downstream", "internal/fanout", "internal/limits", "internal/mcp", "internal/replicas", "internal/requeststate", "internal/settings", "internal/spec", "internal/upstream", "internal/wake", "internal/wire", "modern/front"},
	// Cached results leave all replicas: it knows scopes, and no results.
	"internal/replicas/evict":   {"internal/wake", "internal/fanout", "internal/mcp", "internal/replicas", "internal/transport"},
	"internal/dev/replicastest": {"internal/replicas", "internal/replicas/member", "internal/wake"},
	// A package of its own, since the gateway is made of what replicastest tests.
	"internal/dev/replicastest/gateways": {"gateway", "internal/dev/bridgetest"},

	"internal/replicas/dnspeers": {"internal/replicas", "internal/wake"},
	"internal/replicas/natskv":   {"internal/replicas", "internal/replicas/member", "internal/wake"},
	"internal/replicas/rediskv":  {"internal/replicas", "internal/replicas/member", "internal/wake"},
	// How sessions of legacy clients outlive their replica.
	"internal/replicas/handover": {"internal/mcp", "internal/replicas", "internal/spec", "internal/transport", "internal/wake", "legacy/front"},
	// What listens, for clients and for other replicas, how their connections are accepted, and
	// what bounds them before; HTTP without sockets.
	"internal/httpserver": {"internal/limits", "internal/transport"},
	// What makes a process one of several: the public package alone knows it.
	"internal/replicas/node": {"internal/wake", "internal/httpserver", "internal/limits", "internal/mcp", "internal/peer", "internal/replicas", "internal/replicas/dnspeers", "internal/replicas/member"},

	// What bounds what: the configuration has a key for each, whoever counts has its
	// default and its name.
	"internal/limits": nil,

	// What a log is written through: bytes alone.
	"internal/linebuffer": nil,

	// What a gateway tells of itself: each part fills in what it knows.
	"internal/status": nil,
	// The settings of a server, from a configuration or a program to whoever heeds them.
	"internal/settings": {"internal/fanout", "internal/spec"},
	// What peers do against the protocol, and that it was met: whoever tolerates it says so.
	"internal/quirks": nil,

	// What hides secrets: at the bottom, since texts of servers are cut, and so have to
	// be cleared of secrets, where they are read.
	"internal/redact": nil,

	// What outlives this process to end its commands. The process imports nothing, since
	// it has to be small; only who puts the program together knows of either.
	"internal/guard":         {"internal/guard/process"},
	"internal/guard/process": nil,

	// Beside the layers: the demo server, what only tests use, what make uses.
	"internal/notebook":       {"internal/transport", "internal/wire", "internal/spec", "internal/sse", "internal/wake"},
	"internal/dev/bridgetest": slices.Concat(waist, bottom),
	// Packages of their own, since tests of the waist use bridgetest and these the waist.
	"internal/dev/bridgetest/backtest":   slices.Concat(waist, bottom, []string{"internal/dev/bridgetest"}),
	"internal/dev/bridgetest/legacytest": slices.Concat(waist, bottom, []string{"internal/dev/bridgetest", "internal/dev/bridgetest/backtest"}),
	"internal/dev/bridgetest/moderntest": slices.Concat(waist, bottom, []string{"internal/dev/bridgetest"}),
	"internal/dev/bridgetest/watchtest":  {"internal/mcp", "internal/fanout"},
	// An issuer of tokens, which only tests of who clients are need.
	"internal/dev/bridgetest/issuertest": nil,
	"internal/dev/rules":                 nil,
	"internal/dev/rules/cmd":             {"internal/dev/rules"},
	// The benchmarks measure what users have: the public package.
	"internal/dev/bench":        {"gateway", "internal/cmdhook", "internal/fanout", "internal/linebuffer", "internal/mcp", "internal/observation/accesslog", "internal/observation/telemetry", "internal/observation/trace", "internal/redact", "internal/spec", "internal/wire"},
	"internal/dev/bench/budget": nil,
	// Makes packages of binaries: files alone.
	"internal/dev/packaging":      nil,
	"internal/dev/packaging/sbom": nil,

	// The public package. Only it puts the parts of a gateway together.
	"gateway": slices.Concat(eras, waist, bottom, []string{"gateway/internal/access", "internal/names", "internal/trust/audit", "internal/trust/pin", "internal/trust/policy", "internal/trust/auth", "gateway/internal/router", "internal/observation/metrics", "internal/server", "internal/upstream", "internal/httpserver", "internal/release", "internal/cmdhook", "internal/trust/fetch", "internal/trust/login", "internal/peer", "internal/replicas", "internal/replicas/node", "gateway/internal/group", "gateway/internal/overview", "gateway/internal/visit", "internal/remember", "internal/requeststate", "internal/trust/userlogin"}), // overview says who acts at the admin page; what members of groups listed before is remembered for all of them
	// An engine of replicas each, with its client: whoever puts a program together imports those
	// that it is to have. The gateway has only their interface.
	"gateway/replicas/nats":  {"internal/replicas", "internal/replicas/natskv"},
	"gateway/replicas/redis": {"internal/replicas", "internal/replicas/rediskv"},
	// Programs that embed a gateway: what others import, and no more.
	"examples/embedded":      {"gateway", "examples/internal/notes"},
	"examples/authenticator": {"gateway", "examples/internal/notes"},
	"examples/middleware":    {"gateway", "examples/internal/notes"},
	// The server that they serve, and what their tests run them with.
	"examples/internal/notes":   nil,
	"examples/internal/program": {"internal/dev/bridgetest"},
	// What the public package does not export, for cmd.
	"internal/cmdhook": {"internal/trust/audit", "internal/trust/pin", "internal/fanout", "internal/status", "internal/observation/trace", "internal/trust/login", "internal/mcp", "internal/replicas", "internal/server", "internal/settings", "internal/redact", "internal/transport", "internal/trust/userlogin"},

	// One server, of either era: how it is reached, and what its back is.
	"internal/server": slices.Concat(eras, waist, bottom, []string{"internal/detect", "internal/remember", "internal/upstream"}),

	// What a command line runs.
	"internal/argv": {"internal/hostfile"},

	// Which version runs, and what peers are told of it.
	"internal/release": {"internal/wire"},
}

// testLayers says what the test files of a package may import beyond that.
// Every package's tests may import the package itself and internal/dev/bridgetest.
var testLayers = map[string][]string{
	"cmd/mcpbridge":              {"internal/dev/bridgetest", "internal/dev/bridgetest/backtest"},
	"examples/embedded":          {"examples/internal/program"},
	"examples/authenticator":     {"examples/internal/program"},
	"examples/middleware":        {"examples/internal/program"},
	"internal/trust/auth":        {"internal/dev/bridgetest/issuertest"},
	"internal/config/key":        {"internal/config"}, // which has the keys
	"internal/config/layer":      {"internal/config", "internal/settings"},
	"internal/config/server":     {"internal/config"},
	"internal/config/value":      {"internal/config"},
	"internal/settings":          {"internal/config"}, // which reads them
	"internal/quirks":            {"internal/config"}, // which has a name for each
	"gateway/replicas/nats":      {"gateway", "internal/dev/replicastest/gateways"},
	"gateway/replicas/redis":     {"gateway", "internal/dev/replicastest/gateways"},
	"internal/replicas/evict":    {"internal/dev/replicastest"},
	"gateway/internal/forward":   {"internal/dev/replicastest"},
	"gateway/internal/overview":  {"internal/dev/replicastest"}, // whose engines have heard something
	"gateway/internal/source":    {"internal/budget", "internal/dev/replicastest", "internal/server", "modern/protocol"},
	"internal/replicas/handover": {"internal/fanout", "internal/dev/replicastest", "internal/limits", "internal/wire"},
	"internal/replicas/member":   {"internal/dev/replicastest"},
	"internal/replicas/natskv":   {"internal/dev/replicastest"},
	"internal/replicas/rediskv":  {"internal/dev/replicastest"},
	"internal/replicas/node":     {"internal/certs", "internal/dev/replicastest"},
	"internal/peer":              {"internal/dev/replicastest"},
	"gateway/internal/router":    {"internal/server", "internal/replicas", "internal/dev/replicastest", "internal/dev/bridgetest/issuertest", "internal/dev/bridgetest/legacytest", "internal/observation/metrics", "internal/trust/fetch", "internal/trust/login", "internal/trust/userlogin", "internal/notebook", "internal/upstream", "internal/trust/audit", "internal/trust/pin", "internal/trust/policy"},
	"internal/httpserver":        {"internal/certs"},
	// A report is about a server that was asked.
	"cmd/mcpbridge/internal/report": {"internal/upstream"},
	// A session that is passed on shows only where a front and a back are joined.
	"legacy/eventstream": {"internal/budget"},
	"legacy/front":       {"internal/dev/bridgetest/backtest", "internal/dev/bridgetest/legacytest", "internal/upstream", "legacy/back"},
	"legacy/relay":       {"internal/budget", "internal/dev/bridgetest/backtest", "internal/dev/bridgetest/legacytest", "internal/fanout", "internal/limits", "internal/settings", "legacy/back", "legacy/front"},
	"legacy/back":        {"internal/dev/bridgetest/backtest", "internal/dev/bridgetest/legacytest", "internal/dev/bridgetest/watchtest", "internal/notebook"},
	// The sessions of a pool, a poller and of tasks are Links to a scripted server.
	"legacy/link":  {"internal/dev/bridgetest/legacytest"},
	"legacy/pool":  {"internal/dev/bridgetest/backtest", "internal/dev/bridgetest/legacytest", "legacy/link"},
	"legacy/poll":  {"internal/dev/bridgetest/legacytest", "legacy/link"},
	"legacy/tasks": {"internal/dev/bridgetest/legacytest", "legacy/link"},
	"modern/front": {"internal/dev/bridgetest/moderntest"},
	// Members of a group are Go calls, and what it tells of goes to a stand-in for the hub.
	"gateway/internal/group":       {"internal/dev/bridgetest/backtest", "internal/dev/bridgetest/watchtest"},
	"gateway/internal/group/watch": {"internal/dev/bridgetest/watchtest"},
	// What watches servers is told of to a stand-in for the hub.
	"gateway/internal/hub": {"internal/budget", "internal/dev/bridgetest/backtest", "internal/dev/bridgetest/watchtest"},
	"internal/subscribe":   {"internal/dev/bridgetest/watchtest", "internal/settings", "internal/spec"},
	"legacy/watch":         {"internal/dev/bridgetest/watchtest", "internal/settings", "internal/spec"},
	"modern/watch":         {"internal/dev/bridgetest/watchtest"},
	"internal/upstream":    {"internal/dev/bridgetest/backtest"},
	"internal/server":      {"internal/dev/bridgetest/backtest"},
	// A server that is replaced is tested with the backs of both eras.
	"internal/detect": {"internal/upstream", "legacy/back", "modern/back"},
	// What has to pass both halves is tested with a front before the back.
	"modern/back": {"internal/dev/bridgetest/backtest", "internal/dev/bridgetest/moderntest", "internal/dev/bridgetest/watchtest", "internal/requeststate", "modern/front"},
}

// libraries lists the imports that are kept to a few packages, by prefix: the
// rest of the tree must not learn where its options come from.
var libraries = map[string][]string{
	"github.com/knadh/koanf": {"internal/config", "internal/config/layer"},
	"github.com/spf13/cobra": {"cmd/mcpbridge"},
	"github.com/spf13/pflag": {"cmd/mcpbridge", "internal/config", "internal/config/layer"},

	"github.com/fsnotify/fsnotify": {"cmd/mcpbridge/internal/reload"},
	"github.com/tailscale/hujson":  {"internal/hostfile"},
	"github.com/pelletier/go-toml": {"internal/hostfile"},

	"github.com/go-jose/go-jose":    {"internal/trust/auth", "internal/dev/bridgetest/issuertest", "gateway/internal/router", "internal/trust/login"},
	"github.com/gofrs/flock":        {"internal/trust/login", "internal/trust/pin"},
	"github.com/zalando/go-keyring": {"internal/trust/login"},
	"go.opentelemetry.io":           {"internal/observation/telemetry"},
	"google.golang.org/protobuf":    {"internal/observation/telemetry"},
	"golang.org/x/oauth2":           {"internal/trust/login"},
	"golang.org/x/time":             {"internal/observation/admin", "internal/trust/auth", "internal/trust/policy"},
	"github.com/alicebob/miniredis": {"internal/replicas/rediskv", "gateway/replicas/redis"},
	"github.com/nats-io/nats.go":    {"internal/replicas/natskv"},
	"github.com/nats-io":            {"internal/replicas/natskv", "gateway/replicas/nats"}, // the latter's tests: a server
	"github.com/redis/go-redis":     {"internal/replicas/rediskv"},

	// With these, which find methods by name, the linker leaves out no method of any type.
	"html/template": {},
	"text/template": {},
}

// testLibraries lists the imports, by prefix, that only tests may have: servers that must not
// be in the binary.
var testLibraries = []string{"github.com/alicebob/miniredis", "github.com/nats-io/nats-server"}

// emptyNames are the names that say nothing about what a package or file holds.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "manager", "types"}

// edge is one import: the importing folder, what it imports, and where.
type edge struct {
	from, to string // from is a folder below the module's root; to is an import path
	test     bool   // the import stands in a _test.go file
}

func TestLayers(t *testing.T) {
	t.Chdir(root)
	edges, names := readTree(t, ".")
	for _, e := range edges {
		if why := e.refusal(); why != "" {
			t.Errorf("%s imports %s: %s", e.from, e.to, why)
		}
	}
	for _, name := range names {
		if slices.Contains(emptyNames, path.Base(strings.TrimSuffix(name, ".go"))) {
			t.Errorf("%s: the name says nothing", name)
		}
	}
}

// TestRefusal proves that the check can fail.
func TestRefusal(t *testing.T) {
	for _, tt := range []struct {
		name    string
		e       edge
		refused bool
	}{
		{"down", edge{from: "legacy/back", to: module + "/internal/mcp"}, false},
		{"up", edge{from: "internal/mcp", to: module + "/legacy/back"}, true},
		{"sideways between eras", edge{from: "legacy/back", to: module + "/modern/front"}, true},
		{"from a front of legacy to its back", edge{from: "legacy/front", to: module + "/legacy/back"}, true},
		{"from a back of legacy to its front", edge{from: "legacy/back", to: module + "/legacy/front"}, true},
		{"from a front to a back", edge{from: "modern/front", to: module + "/modern/back"}, true},
		{"from a back to a front", edge{from: "modern/back", to: module + "/modern/front"}, true},
		{"from a front to a back in a test", edge{from: "modern/front", to: module + "/modern/back", test: true}, true},
		{"from a back to a front in a test", edge{from: "modern/back", to: module + "/modern/front", test: true}, false},
		{"sideways at the bottom", edge{from: "index", to: module + "/internal/wire"}, true},
		{"unknown folder", edge{from: "internal/misc", to: module + "/internal/wire"}, true},
		{"test support in a test", edge{from: "modern/front", to: module + "/internal/dev/bridgetest", test: true}, false},
		{"test support in the product", edge{from: "modern/front", to: module + "/internal/dev/bridgetest"}, true},
		{"itself in an external test", edge{from: "index", to: module + "/index", test: true}, false},
		{"koanf where it belongs", edge{from: "internal/config", to: "github.com/knadh/koanf/v2"}, false},
		{"koanf elsewhere", edge{from: "gateway/internal/router", to: "github.com/knadh/koanf/v2"}, true},
		{"pflag in a test elsewhere", edge{from: "gateway/internal/router", to: "github.com/spf13/pflag", test: true}, true},
		{"a server in a test", edge{from: "internal/replicas/natskv", to: "github.com/nats-io/nats-server/v2/server", test: true}, false},
		{"a server in the product", edge{from: "internal/replicas/natskv", to: "github.com/nats-io/nats-server/v2/server"}, true},
		{"a server in a test elsewhere", edge{from: "internal/replicas/node", to: "github.com/alicebob/miniredis/v2", test: true}, true},
		{"the public package in the program", edge{from: "cmd/mcpbridge", to: module + "/gateway"}, false},
		{"the public package in what it is made of", edge{from: "gateway/internal/router", to: module + "/gateway"}, true},
		{"standard library", edge{from: "index", to: "sync"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.e.refusal(); (got != "") != tt.refused {
				t.Errorf("refusal(%+v) = %q, want refused = %v", tt.e, got, tt.refused)
			}
		})
	}
}

// refusal returns why the import is not allowed, or "".
func (e edge) refusal() string {
	for prefix, homes := range libraries {
		if strings.HasPrefix(e.to, prefix) && !slices.Contains(homes, e.from) {
			return "only " + strings.Join(homes, " and ") + " may"
		}
	}
	if !e.test && slices.ContainsFunc(testLibraries, func(prefix string) bool { return strings.HasPrefix(e.to, prefix) }) {
		return "only tests may"
	}
	to, ours := strings.CutPrefix(e.to, module+"/")
	if !ours {
		return ""
	}
	allowed, known := layers[e.from]
	switch {
	case !known:
		return "the importing folder is not in the table of layers_test.go"
	case slices.Contains(allowed, to):
		return ""
	case e.test && (to == e.from || to == "internal/dev/bridgetest" || slices.Contains(testLayers[e.from], to)):
		return ""
	}
	return "imports point down, never sideways (the table of layers_test.go)"
}

// readTree parses the import clauses of every Go file of the module, whatever
// its build tags, and returns them with the names of all folders and files.
func readTree(t *testing.T, root string) (edges []edge, names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			return enter(name)
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		names = append(names, path.Dir(name), name)
		found, err := imports(name)
		edges = append(edges, found...)
		return err
	})
	if err != nil {
		t.Fatalf("reading the tree: %v", err)
	}
	if len(edges) == 0 {
		t.Fatal("found no imports: not run from the module's root?")
	}
	return edges, names
}

// isMade reports whether a folder is not of the tree: .gitignore has it, since builds and
// registries fill it, perhaps while the tree is read.
func isMade(dir string) bool {
	return slices.Contains([]string{"bin", "dist", "node_modules"}, path.Base(dir))
}

// enter skips what the go command skips, what is made, and modules of their own.
func enter(dir string) error {
	base := path.Base(dir)
	if dir == "." {
		return nil
	}
	if base == "testdata" || isMade(dir) || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func imports(name string) ([]edge, error) {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var edges []edge
	for _, spec := range f.Imports {
		to, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		edges = append(edges, edge{from: path.Dir(name), to: to, test: strings.HasSuffix(name, "_test.go")})
	}
	return edges, nil
}
