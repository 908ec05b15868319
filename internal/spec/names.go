package spec

// Requests.
const (
	MethodDiscover            = "server/discover"      // modern
	MethodListen              = "subscriptions/listen" // modern
	MethodInitialize          = "initialize"           // legacy
	MethodPing                = "ping"                 // legacy
	MethodSetLevel            = "logging/setLevel"     // legacy
	MethodSubscribe           = "resources/subscribe"  // legacy
	MethodUnsubscribe         = "resources/unsubscribe"
	MethodToolsList           = "tools/list"
	MethodToolsCall           = "tools/call"
	MethodPromptsList         = "prompts/list"
	MethodPromptsGet          = "prompts/get"
	MethodResourcesList       = "resources/list"
	MethodResourcesTemplates  = "resources/templates/list"
	MethodResourcesRead       = "resources/read"
	MethodComplete            = "completion/complete"
	MethodElicit              = "elicitation/create"
	MethodSample              = "sampling/createMessage"
	MethodRootsList           = "roots/list"
	MethodTasksPrefix         = "tasks/"
	MethodTaskGet             = "tasks/get"    // legacy, and the tasks extension
	MethodTaskUpdate          = "tasks/update" // the tasks extension
	MethodTaskList            = "tasks/list"   // legacy
	MethodTaskCancel          = "tasks/cancel" // legacy, and the tasks extension
	MethodTaskResult          = "tasks/result" // legacy
	MethodSkillsList          = "skills/list"  // the skills extension
	MethodSkillsGet           = "skills/get"
	MethodNotificationsPrefix = "notifications/"
)

// Notifications.
const (
	NotifyInitialized          = "notifications/initialized"
	NotifyCancelled            = "notifications/cancelled"
	NotifyProgress             = "notifications/progress"
	NotifyMessage              = "notifications/message"
	NotifyToolsListChanged     = "notifications/tools/list_changed"
	NotifyPromptsListChanged   = "notifications/prompts/list_changed"
	NotifyResourcesListChanged = "notifications/resources/list_changed"
	NotifyResourceUpdated      = "notifications/resources/updated"
	NotifyElicitationComplete  = "notifications/elicitation/complete" // 2025-11-25 only
	NotifyRootsListChanged     = "notifications/roots/list_changed"
	NotifyAcknowledged         = "notifications/subscriptions/acknowledged"
	NotifyTasks                = "notifications/tasks"        // the tasks extension
	NotifyTaskStatus           = "notifications/tasks/status" // 2025-11-25 only
)

// Header names of the HTTP transports, in net/http's canonical form.
const (
	HeaderProtocolVersion = "Mcp-Protocol-Version"
	HeaderMethod          = "Mcp-Method"
	HeaderName            = "Mcp-Name"
	HeaderParamPrefix     = "Mcp-Param-"
	HeaderSession         = "Mcp-Session-Id"
	HeaderLastEventID     = "Last-Event-Id"
)

// EventEndpoint is the type of the first event of an HTTP+SSE stream. Its data is the URI
// for POST requests.
//
// Spec: 2024-11-05, basic/transports, HTTP with SSE.
const EventEndpoint = "endpoint"

// Reserved keys of _meta.
//
// Spec: 2026-07-28, basic/index, _meta.
const (
	MetaPrefix             = "io.modelcontextprotocol/"
	MetaProtocolVersion    = MetaPrefix + "protocolVersion"
	MetaClientInfo         = MetaPrefix + "clientInfo"
	MetaClientCapabilities = MetaPrefix + "clientCapabilities"
	MetaLogLevel           = MetaPrefix + "logLevel"
	MetaSubscriptionID     = MetaPrefix + "subscriptionId"
	MetaServerInfo         = MetaPrefix + "serverInfo"
	MetaProgressToken      = "progressToken"
)

// MetaStateLost is the key of a result's _meta that says that the server may have lost the
// state that it had of the client, and why.
const MetaStateLost = "dev.mcpbridge/state-lost"

// MetaMissing is the key of a list's _meta that names the servers of a group whose items the list
// lacks, since they could not be asked.
const MetaMissing = "dev.mcpbridge/missing"

// DataUnavailable is the key of an error's data, true there, that says that mcpbridge answers, but
// can't use the server of the endpoint.
const DataUnavailable = "dev.mcpbridge/unavailable"

// MetaServer is the key of the _meta of a question, or of a result that asks, that names the
// server of a group that asks.
const MetaServer = "dev.mcpbridge/server"

// MetaRelatedTask is the key of _meta that names the task of 2025-11-25 to which a message belongs.
//
// Spec: 2025-11-25, basic/utilities/tasks, Related Task Metadata.
const MetaRelatedTask = MetaPrefix + "related-task"

// MetaRelatedTasks is the key of a request's _meta that names tasks which have to do with it.
//
// Spec: tasks extension, draft of 2026-09-16.
const MetaRelatedTasks = MetaPrefix + "relatedTaskIds"

// Keys of _meta between replicas. MetaNumbers in a listen request asks for numbers of changes, by true.
// MetaNumber in a change is its number: of two changes of one resource or list that a replica tells,
// the later one has the higher. A change that comes on two streams has the same on both.
const (
	MetaNumbers = "dev.mcpbridge/numbers"
	MetaNumber  = "dev.mcpbridge/number"
)

// ExtensionTasks is the name of the tasks extension of 2026. It differs from the tasks of
// 2025-11-25, and passes only between modern clients and modern servers.
const ExtensionTasks = MetaPrefix + "tasks"

// ExtensionUI is the extension of MCP Apps, which has no methods.
//
// Spec: MCP Apps 2026-01-26.
const ExtensionUI = MetaPrefix + "ui"

// ExtensionSkills is the name of the skills extension.
const ExtensionSkills = MetaPrefix + "skills"

// FilterTaskIDs is the member of a listen request's filter that names tasks.
const FilterTaskIDs = "taskIds"

// Values of resultType.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
	ResultTask          = "task" // of the tasks extension
)

// Values of cacheScope.
const (
	ScopePrivate = "private"
	ScopePublic  = "public"
)
