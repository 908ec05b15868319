package quirks

import "slices"

// A Quirk is a deviation from the protocol that is tolerated.
type Quirk uint8

// The quirks. Their order is that of the table.
const (
	// The quirks of clients.

	// HeaderRevision: in a session the header names another known revision.
	HeaderRevision Quirk = iota
	// EnvelopeUnderLegacyHeader: a complete envelope under a header with a known legacy revision.
	EnvelopeUnderLegacyHeader
	// InitializeUnderModernHeader: initialize without an envelope under a known modern header.
	InitializeUnderModernHeader
	// Accept: a legacy request accepts only one of the two forms of a response.
	Accept

	// The quirks of servers.

	// ServerRevision: initialize is answered with a known revision that has none, or with none.
	ServerRevision

	end // behind the last one
)

// A Side is who deviates from the protocol.
type Side string

// The sides.
const (
	Client Side = "client"
	Server Side = "server"
)

// A Description says what a quirk is, in Markdown without line breaks.
type Description struct {
	ID    string // of its rule
	Name  string // in the configuration, in metrics and in logs
	Side  Side
	Seen  string // what is seen on the wire
	Where string // in which programs it was seen
	Done  string // what mcpbridge does
	Costs string // what that costs
	// Breaks is the sentence of the specification that is broken, in other words, and
	// Section is where it stands.
	Breaks, Section string
	Since           string // the first version that tolerates it
	// Always says that it can't be switched off.
	Always bool
}

// table has the description of each Quirk, at its place.
var table = [end]Description{
	HeaderRevision: {
		ID: "Q-01", Name: "header-revision", Side: Client,
		Seen:   "In a session the `MCP-Protocol-Version` header names another known revision than the handshake did.",
		Where:  "Claude Code, claude.ai, clients of laravel/mcp and the Java SDK",
		Done:   "The session's own revision holds, also for GET, DELETE and posts of HTTP+SSE, and where the header is 2026-07-28 and the body has no envelope. A session that is unknown or over is 404.",
		Costs:  "A client that confuses its sessions is not told so.",
		Breaks: "After the handshake the header must have the revision that was negotiated", Section: "2025-11-25, basic/transports, Protocol Version Header",
		Since: "0.1.0",
	},
	EnvelopeUnderLegacyHeader: {
		ID: "Q-02", Name: "envelope-under-legacy-header", Side: Client,
		Seen:   "The body has a complete envelope of 2026-07-28, and `MCP-Protocol-Version` names a known legacy revision.",
		Where:  "Claude Code",
		Done:   "The envelope decides: the request is served as one of 2026-07-28. All other headers stay strict.",
		Costs:  "It departs from a MUST: a proxy that goes by this header alone takes the request for a legacy one.",
		Breaks: "A server has to refuse a request whose header is not the revision in the body", Section: "2026-07-28, basic/transports/streamable-http, Protocol Version Header",
		Since: "0.1.0",
	},
	InitializeUnderModernHeader: {
		ID: "Q-03", Name: "initialize-under-modern-header", Side: Client,
		Seen:   "`initialize` without an envelope comes under the header 2026-07-28.",
		Where:  "Effect, clients of Graylog",
		Done:   "It opens a session, in 2025-11-25 if the body asks for 2026-07-28.",
		Costs:  "Nothing: that revision has no `initialize` that could be meant.",
		Breaks: "Requests under this header have an envelope, and the revision that it names has no `initialize`", Section: "2026-07-28, basic/versioning, Backward Compatibility with Initialization-Based Versions",
		Since: "0.1.0",
	},
	Accept: {
		ID: "Q-04", Name: "accept", Side: Client,
		Seen:   "A POST of a session, or `initialize`, accepts JSON and no event streams, or the other way round.",
		Where:  "Claude Code, clients of OneUptime",
		Done:   "It gets the form that it accepts. Without streams the response waits for the result; what the server asks meanwhile goes to the GET stream of the session.",
		Costs:  "Without streams progress and log messages of the call are dropped (`mcpbridge_messages_dropped_total`, reason `no stream accepted`), a question without a GET stream fails, and nothing keeps a slow response alive.",
		Breaks: "A POST has to accept both forms", Section: "2025-11-25, basic/transports, Sending Messages to the Server",
		Since: "0.1.0",
	},
	ServerRevision: {
		ID: "Q-05", Name: "server-revision", Side: Server,
		Seen:   "A server answers `initialize` with 2026-07-28, which has no such request, or without `protocolVersion`.",
		Where:  "pgEdge's server, iris-agentic-dev",
		Done:   "It is used as one of 2025-11-25 once `tools/list` or `ping` works. Headers name what it answered, and 2025-11-25 after a 400. A session that is passed through gets the answer as it is.",
		Costs:  "One more request when a session is opened.",
		Breaks: "The answer names a revision that the server supports in a handshake, the client's if it can", Section: "2025-11-25, basic/lifecycle, Version Negotiation",
		Since: "0.1.0",
	},
}

// Describe returns what q is.
func (q Quirk) Describe() *Description { return &table[q] }

// String returns the name of q.
func (q Quirk) String() string { return table[q].Name }

// All returns all quirks, in the order of the table.
func All() []Quirk {
	all := make([]Quirk, end)
	for i := range all {
		all[i] = Quirk(i)
	}
	return all
}

// Of returns the quirk of a name.
func Of(name string) (Quirk, bool) {
	i := slices.IndexFunc(table[:], func(d Description) bool { return d.Name == name })
	return Quirk(max(i, 0)), i >= 0
}
