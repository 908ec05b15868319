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
	// StrayEnvelope: an envelope that does not make a legacy message a modern one.
	StrayEnvelope
	// NullParams: the params of a message are null.
	NullParams
	// ModernAccept: a modern request accepts only one of the two forms of a response.
	ModernAccept
	// RawName: Mcp-Name has characters outside ASCII that are not encoded.
	RawName
	// TaskName: a request about a task has no Mcp-Name.
	TaskName

	// The quirks of servers.

	// ServerRevision: initialize is answered with a known revision that has none, or with none.
	ServerRevision
	// ListMissing: a result lacks its list, or has null instead.
	ListMissing
	// NullMembers: members of a result or of its items are null that must not be.
	NullMembers
	// ToolSchema: the input schema of a tool is missing or not of an object.
	ToolSchema
	// Completions: a completion has over 100 values.
	Completions
	// UnframedAnswer: a response stands at the end of a stream, without an event.
	UnframedAnswer
	// AnswerWithoutID: a response to a request has no id, or null.
	AnswerWithoutID
	// NotificationStatus: a notification or response that was posted is answered with a success other than 202.
	NotificationStatus
	// AnswerElsewhere: a request is answered with 202, and the response comes on the GET stream.
	AnswerElsewhere
	// LostSession: a session that is lost is reported by another status than 404.
	LostSession
	// StdoutNoise: a command writes lines that are no messages to its standard output.
	StdoutNoise
	// ProgressOrder: progress does not increase.
	ProgressOrder
	// UndeclaredNotice: a change is reported that was not declared.
	UndeclaredNotice
	// EncodedName: a server refuses an encoded Mcp-Name, and takes the raw one.
	EncodedName
	// UntaggedNotice: a change on a listen stream has no subscription id.
	UntaggedNotice

	end // behind the last one
)

// Mended are the quirks of one result, each once. The zero value has none.
type Mended []Quirk

// Add adds a quirk.
func (m *Mended) Add(q Quirk) {
	if !slices.Contains(*m, q) {
		*m = append(*m, q)
	}
}

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
		Where:  "Claude Code (anthropics/claude-code#92835), claude.ai (SparkyFitness#2155, OneUptime#3707), clients of laravel/mcp#256 and java-sdk#684",
		Done:   "The session's own revision holds, also for GET, DELETE and posts of HTTP+SSE, and where the header is 2026-07-28 and the body has no envelope. A session that is unknown or over is 404.",
		Costs:  "A client that confuses its sessions is not told so.",
		Breaks: "After the handshake the header must have the revision that was negotiated", Section: "2025-11-25, basic/transports, Protocol Version Header",
		Since: "0.1.0",
	},
	EnvelopeUnderLegacyHeader: {
		ID: "Q-02", Name: "envelope-under-legacy-header", Side: Client,
		Seen:   "The body has a complete envelope of 2026-07-28, and `MCP-Protocol-Version` names a known legacy revision.",
		Where:  "Claude Code (anthropics/claude-code#93290)",
		Done:   "The envelope decides: the request is served as one of 2026-07-28. All other headers stay strict.",
		Costs:  "It departs from a MUST: a proxy that goes by this header alone takes the request for a legacy one.",
		Breaks: "A server has to refuse a request whose header is not the revision in the body", Section: "2026-07-28, basic/transports/streamable-http, Protocol Version Header",
		Since: "0.1.0",
	},
	InitializeUnderModernHeader: {
		ID: "Q-03", Name: "initialize-under-modern-header", Side: Client,
		Seen:   "`initialize` without an envelope comes under the header 2026-07-28.",
		Where:  "Effect#7388, clients of Graylog#25956",
		Done:   "It opens a session, in 2025-11-25 if the body asks for 2026-07-28.",
		Costs:  "Nothing: that revision has no `initialize` that could be meant.",
		Breaks: "Requests under this header have an envelope, and the revision that it names has no `initialize`", Section: "2026-07-28, basic/versioning, Backward Compatibility with Initialization-Based Versions",
		Since: "0.1.0",
	},
	Accept: {
		ID: "Q-04", Name: "accept", Side: Client,
		Seen:   "A POST of a session, or `initialize`, accepts JSON and no event streams, or the other way round.",
		Where:  "Claude Code (KeeperHub#733), claude.ai (OneUptime#3707, modelcontextprotocol/python-sdk#2349), ElevenLabs (ComposioHQ/composio#2152), Gemini CLI and Open WebUI (honojs/middleware#1799)",
		Done:   "It gets the form that it accepts. Without streams the response waits for the result; what the server asks meanwhile goes to the GET stream of the session.",
		Costs:  "Without streams progress and log messages of the call are dropped (`mcpbridge_messages_dropped_total`, reason `no stream accepted`), a question without a GET stream fails, and nothing keeps a slow response alive.",
		Breaks: "A POST has to accept both forms", Section: "2025-11-25, basic/transports, Sending Messages to the Server",
		Since: "0.1.0",
	},
	StrayEnvelope: {
		ID: "Q-06", Name: "stray-envelope", Side: Client,
		Seen:   "`initialize` has an envelope; or a message of a session has one, and is none of 2026-07-28: the envelope names a legacy revision or lacks a member, or that revision has no such method (`ping`). `MCP-Protocol-Version` names a known legacy revision or is missing; on a pipe or WebSocket a session is open.",
		Where:  "Nowhere yet; servers on the SDKs for TypeScript, Python and Go take them (interop/go/deviations)",
		Done:   "The envelope counts for nothing: the message belongs to its session, and `initialize` opens one.",
		Costs:  "A client that means 2026-07-28 is not told what its envelope lacks, unless its header says so, too.",
		Breaks: "An envelope names the revision of its request, has all its members, and its request is no `initialize`", Section: "2026-07-28, basic/index, Per-request protocol fields",
		Since: "0.1.0",
	},
	NullParams: {
		ID: "Q-07", Name: "null-params", Side: Client,
		Seen:   "The `params` of a request or notification are null.",
		Where:  "Nowhere yet; servers on the SDKs for Python and Go take them (interop/go/deviations)",
		Done:   "They count as missing, and servers get them so.",
		Costs:  "Nothing.",
		Breaks: "Params are an object, or missing", Section: "2025-11-25, basic, Requests",
		Since: "0.1.0",
	},
	ModernAccept: {
		ID: "F-08", Name: "modern-accept", Side: Client, Always: true,
		Seen:   "A request of 2026-07-28 accepts JSON and no event streams, or the other way round.",
		Where:  "clients that call one tool and read one answer",
		Done:   "It gets the form that it accepts; without streams progress and log messages are left out. `subscriptions/listen` needs a stream.",
		Costs:  "Without streams nothing keeps a slow response alive.",
		Breaks: "A POST has to accept both forms", Section: "2026-07-28, basic/transports/streamable-http, Sending Messages",
		Since: "0.1.0",
	},
	RawName: {
		ID: "F-02", Name: "raw-name", Side: Client, Always: true,
		Seen:   "`Mcp-Name` has characters outside ASCII that are not encoded in base64.",
		Where:  "SDKs that send and compare names as raw UTF-8, as go-sdk did (modelcontextprotocol/go-sdk#1246)",
		Done:   "It is compared as UTF-8.",
		Costs:  "Nothing, but proxies may spoil such a header.",
		Breaks: "A value that a header can't hold as it is has to be encoded", Section: "2026-07-28, basic/transports/streamable-http, Value Encoding",
		Since: "0.1.0",
	},
	TaskName: {
		ID: "T-02", Name: "task-name-missing", Side: Client, Always: true,
		Seen:   "`tasks/get`, `tasks/update` or `tasks/cancel` comes without `Mcp-Name`.",
		Where:  "MCP Inspector (modelcontextprotocol/inspector#1917) and other clients on the TypeScript SDK (modelcontextprotocol/typescript-sdk#2613)",
		Done:   "The task that the body names is meant.",
		Costs:  "A proxy can't route by the task.",
		Breaks: "Requests about a task have its id in this header", Section: "tasks extension 2026-07-28, Streamable HTTP: Routing Headers",
		Since: "0.1.0",
	},
	ServerRevision: {
		ID: "Q-05", Name: "server-revision", Side: Server,
		Seen:   "A server answers `initialize` with 2026-07-28, which has no such request, or without `protocolVersion`.",
		Where:  "pgEdge#212, iris-agentic-dev#117",
		Done:   "It is used as one of 2025-11-25 once `tools/list` or `ping` works. Headers name what it answered, and 2025-11-25 after a 400. A session that is passed through gets the answer as it is.",
		Costs:  "One more request when a session is opened.",
		Breaks: "The answer names a revision that the server supports in a handshake, the client's if it can", Section: "2025-11-25, basic/lifecycle, Version Negotiation",
		Since: "0.1.0",
	},
	ListMissing: {
		ID: "M2L-09", Name: "list-missing", Side: Server, Always: true,
		Seen:   "A result lacks the list that its method has (`content`, `tools`, `messages` and so on), or has null instead.",
		Where:  "servers on Cloudflare (cloudflare/mcp-server-cloudflare#12) and of modelcontextprotocol/python-sdk#1796, which leave `content` out; go-sdk servers with no content, servers that serialize empty fields as null",
		Done:   "Clients get an empty list, but for legacy ones of a legacy server.",
		Costs:  "Nothing.",
		Breaks: "The list of such a result is required, and an array", Section: "2025-11-25, schema, CallToolResult and the results of lists",
		Since: "0.1.0",
	},
	NullMembers: {
		ID: "M2L-09", Name: "null-members", Side: Server, Always: true,
		Seen:   "Members of a result, or of the items of its list, are null whose type has no null, such as `nextCursor`, `title` or `annotations`.",
		Where:  "Wazuh (gensecaihq/Wazuh-MCP-Server#75), Codewhale (Hmbown/Codewhale#5335); servers that serialize every field",
		Done:   "Clients get the result without them, but for legacy ones of a legacy server; structured content, schemas, `_meta` and unknown members stay.",
		Costs:  "Nothing.",
		Breaks: "An optional member is left out, or has its type", Section: "2025-11-25, schema, the types of results",
		Since: "0.1.0",
	},
	ToolSchema: {
		ID: "M2L-09", Name: "tool-schema", Side: Server, Always: true,
		Seen:   "A tool's `inputSchema` is missing or has no `type: object`.",
		Where:  "GitLab (zereight/gitlab-mcp#286), taskwarrior (awwaiid/mcp-server-taskwarrior#11); tools without arguments on older rmcp (modelcontextprotocol/rust-sdk#445)",
		Done:   "Clients get an object for the type that is missing, but for legacy ones of a legacy server. A tool whose schema is of something else is left out, with a warning in the log.",
		Costs:  "A tool that is left out can't be found.",
		Breaks: "A tool has an `inputSchema`, a schema of an object", Section: "2025-11-25, server/tools, Tool",
		Since: "0.1.0",
	},
	Completions: {
		ID: "M2L-09", Name: "completions", Side: Server, Always: true,
		Seen:   "A completion has more than 100 values.",
		Where:  "servers that return every candidate (modelcontextprotocol/python-sdk#3048)",
		Done:   "Clients get the first 100, with `hasMore`, but for legacy ones of a legacy server.",
		Costs:  "The others are lost.",
		Breaks: "A response has at most 100 values", Section: "2025-11-25, server/utilities/completion, Completion Results",
		Since: "0.1.0",
	},
	UnframedAnswer: {
		ID: "M2L-15", Name: "unframed-answer", Side: Server, Always: true,
		Seen:   "An event stream ends with a JSON-RPC response that is no event.",
		Where:  "Refero (envoyproxy/ai-gateway#2229); servers that append a late error as plain JSON",
		Done:   "It is taken for the response.",
		Costs:  "Nothing.",
		Breaks: "Messages on a stream are events of it", Section: "2025-11-25, basic/transports, Sending Messages to the Server",
		Since: "0.1.0",
	},
	AnswerWithoutID: {
		ID: "M2L-04", Name: "answer-without-id", Side: Server, Always: true,
		Seen:   "A response to a POST with one request has no id, or null, under a status of success.",
		Where:  "Helidon (helidon-io/helidon-mcp#65), radare2 (radareorg/radare2-mcp#68)",
		Done:   "It is taken for the response.",
		Costs:  "Nothing: a POST has one request.",
		Breaks: "A response has the id of its request, unless that could not be read", Section: "2025-11-25, basic, Responses",
		Since: "0.1.0",
	},
	NotificationStatus: {
		ID: "M2L-01", Name: "notification-status", Side: Server, Always: true,
		Seen:   "A notification, or a response, that was posted is answered with a success other than 202.",
		Where:  "Helidon (helidon-io/helidon-mcp#175), WordPress (WordPress/mcp-adapter#125), servers of modelcontextprotocol/rust-sdk#497 (204)",
		Done:   "It counts as accepted.",
		Costs:  "Nothing.",
		Breaks: "A notification or response that is accepted gets 202 without a body", Section: "2025-11-25, basic/transports, Sending Messages to the Server",
		Since: "0.1.0",
	},
	AnswerElsewhere: {
		ID: "M2L-01", Name: "answer-elsewhere", Side: Server, Always: true,
		Seen:   "The response to a request comes on the GET stream of the session, mostly after a 202.",
		Where:  "servers that send all messages on one stream (modelcontextprotocol/python-sdk#1661)",
		Done:   "The response is taken from there, within 5 s after a 202 or 204.",
		Costs:  "A call fails only 5 s after a 202 that nothing follows.",
		Breaks: "This stream has no responses, unless it continues that of a request", Section: "2025-11-25, basic/transports, Listening for Messages from the Server",
		Since: "0.1.0",
	},
	LostSession: {
		ID: "M2L-03", Name: "lost-session-status", Side: Server, Always: true,
		Seen:   "A session that is lost is reported by 400, or another status than 404.",
		Where:  "TypeScript servers of 1.x (DAWNCR0W/affine-mcp-server#301), servers on the SDKs for Python (modelcontextprotocol/python-sdk#1004) and Rust (modelcontextprotocol/rust-sdk#689: 401)",
		Done:   "A ping shows whether the session is lost; then another one is opened.",
		Costs:  "One more request.",
		Breaks: "A request of a session that has ended gets 404", Section: "2025-11-25, basic/transports, Session Management",
		Since: "0.1.0",
	},
	StdoutNoise: {
		ID: "U-04", Name: "stdout-noise", Side: Server, Always: true,
		Seen:   "A command writes lines that are no messages to its standard output.",
		Where:  "Azure DevOps (microsoft/azure-devops-mcp#147), EWS (azizmazrou/ews-mcp#133), Dash (Kapeli/dash-mcp-server#10)",
		Done:   "They are skipped, and logged at a bounded rate; of the first one, and of text alone for 10 s, people are warned.",
		Costs:  "Nothing.",
		Breaks: "Nothing but messages may be written there", Section: "2025-11-25, basic/transports, stdio",
		Since: "0.1.0",
	},
	ProgressOrder: {
		ID: "M2L-11", Name: "progress-order", Side: Server, Always: true,
		Seen:   "Progress of a request does not increase, or is no number.",
		Where:  "windbg-mcp (glslang/windbg-mcp#147), openchrome (shaun0927/openchrome#954)",
		Done:   "It is not passed on.",
		Costs:  "The message of such progress is lost.",
		Breaks: "Each progress of a request is greater than the one before", Section: "2025-11-25, basic/utilities/progress, Progress Flow",
		Since: "0.1.0",
	},
	UndeclaredNotice: {
		ID: "M2L-31", Name: "undeclared-notice", Side: Server, Always: true,
		Seen:   "A server reports changes of a list without having declared `listChanged`, or of a resource without `subscribe`.",
		Where:  "TypeScript servers of 1.x (modelcontextprotocol/typescript-sdk#1948)",
		Done:   "Results that are kept are dropped, and who follows the list all the same, as with `synthesize`, is told.",
		Costs:  "Nothing.",
		Breaks: "Only capabilities that were negotiated may be used", Section: "2025-11-25, basic/lifecycle, Operation",
		Since: "0.1.0",
	},
	EncodedName: {
		ID: "L2M-10", Name: "encoded-name-refused", Side: Server, Always: true,
		Seen:   "A server of 2026-07-28 refuses an `Mcp-Name` in base64, and takes the same name in raw UTF-8.",
		Where:  "go-sdk servers, which compare the header as it is (modelcontextprotocol/go-sdk#1234)",
		Done:   "Names are sent raw from then on. It is counted when it is found out.",
		Costs:  "One more request.",
		Breaks: "A server decodes the header before it compares it", Section: "2026-07-28, basic/transports/streamable-http, Value Encoding",
		Since: "0.1.0",
	},
	UntaggedNotice: {
		ID: "L2M-23", Name: "untagged-notice", Side: Server, Always: true,
		Seen:   "A change on a listen stream has no subscription id.",
		Where:  "servers made after the examples of the draft, which had none until modelcontextprotocol/modelcontextprotocol#2953",
		Done:   "It belongs to the stream that it came on or, on a connection, to the only one.",
		Costs:  "On a connection with several streams it is dropped.",
		Breaks: "Each notification on such a stream has the id of its request", Section: "2026-07-28, basic/patterns/subscriptions, Receiving Notifications",
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
