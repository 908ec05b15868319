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
	MethodTaskCancel          = "tasks/cancel" // legacy, and the tasks extension
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

// EventEndpoint is the type of the first event of an HTTP+SSE stream, which says where
// to post.
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

// ExtensionTasks names the 2026 tasks extension, which is not the tasks of
// 2025-11-25: it passes between modern clients and modern servers alone.
const ExtensionTasks = MetaPrefix + "tasks"

// FilterTaskIDs is the member of a listen request's filter that names tasks.
const FilterTaskIDs = "taskIds"

// Values of resultType.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
	ResultTask          = "task" // the tasks extension's
)

// Values of cacheScope.
const (
	ScopePrivate = "private"
	ScopePublic  = "public"
)

// Cacheable reports whether complete results of method carry ttlMs and
// cacheScope.
//
// Spec: 2026-07-28, server/utilities/caching.
func Cacheable(method string) bool {
	switch method {
	case MethodDiscover, MethodToolsList, MethodPromptsList,
		MethodResourcesList, MethodResourcesTemplates, MethodResourcesRead:
		return true
	}
	return false
}

// Named returns the params member that Mcp-Name mirrors for method, or "" if
// the method has none.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Standard Request Headers;
// tasks extension 2026-07-28, Streamable HTTP: Routing Headers.
func Named(method string) string {
	switch method {
	case MethodToolsCall, MethodPromptsGet:
		return "name"
	case MethodResourcesRead:
		return "uri"
	case MethodTaskGet, MethodTaskUpdate, MethodTaskCancel:
		return "taskId"
	}
	return ""
}

// MayAsk reports whether requests of method may be answered with questions.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Supported Requests.
func MayAsk(method string) bool {
	return method == MethodToolsCall || method == MethodPromptsGet || method == MethodResourcesRead
}

// OnTask reports whether method is one of the three that the tasks extension has.
func OnTask(method string) bool {
	return method == MethodTaskGet || method == MethodTaskUpdate || method == MethodTaskCancel
}

// Repeatable reports whether a request may be sent twice without the server
// doing something twice: lists, reads, prompts/get, completion and discovery, and
// looking at a task, answering it and cancelling it.
func Repeatable(method string) bool {
	switch method {
	case MethodToolsList, MethodPromptsList, MethodPromptsGet, MethodResourcesList,
		MethodResourcesTemplates, MethodResourcesRead, MethodComplete, MethodDiscover,
		MethodTaskGet, MethodTaskUpdate, MethodTaskCancel:
		return true
	}
	return false
}

// LegacyOnly reports whether method exists in legacy revisions and is gone from
// the modern one.
func LegacyOnly(method string) bool {
	switch method {
	case MethodInitialize, MethodPing, MethodSetLevel, MethodSubscribe, MethodUnsubscribe:
		return true
	}
	return false
}

// Defined reports whether the specification, in any revision, has requests of
// method from clients to servers.
func Defined(method string) bool {
	return Capability(method) != "" || LegacyOnly(method) || method == MethodDiscover || method == MethodListen
}

// Capability returns the server capability that a method needs, or "" for a
// method that needs none or is not the specification's.
func Capability(method string) string {
	switch method {
	case MethodToolsList, MethodToolsCall:
		return "tools"
	case MethodPromptsList, MethodPromptsGet:
		return "prompts"
	case MethodResourcesList, MethodResourcesTemplates, MethodResourcesRead,
		MethodSubscribe, MethodUnsubscribe:
		return "resources"
	case MethodComplete:
		return "completions"
	case MethodSetLevel:
		return "logging"
	}
	return ""
}
