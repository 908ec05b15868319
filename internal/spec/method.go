package spec

// A method is what the specification says of one kind of request from clients.
type method struct {
	legacyOnly bool   // the modern revision has it no more
	capability string // the server capability that it needs
	array      string // the member of its results that is an array and must be there
	named      string // the member of its params that Mcp-Name mirrors
	cacheable  bool
	mayAsk     bool
	repeatable bool
	extension  bool // the tasks extension's, not the specification's own
}

// methods has every request that the specification, in any revision, or the tasks
// extension has clients send. The tasks of 2025-11-25 are left out: they never cross.
var methods = map[string]method{
	MethodDiscover: {cacheable: true, repeatable: true},
	MethodListen:   {},

	MethodInitialize:  {legacyOnly: true},
	MethodPing:        {legacyOnly: true},
	MethodSetLevel:    {legacyOnly: true, capability: "logging"},
	MethodSubscribe:   {legacyOnly: true, capability: "resources"},
	MethodUnsubscribe: {legacyOnly: true, capability: "resources"},

	MethodToolsList: {capability: "tools", array: "tools", cacheable: true, repeatable: true},
	MethodToolsCall: {capability: "tools", array: "content", named: "name", mayAsk: true},

	MethodPromptsList: {capability: "prompts", array: "prompts", cacheable: true, repeatable: true},
	MethodPromptsGet:  {capability: "prompts", array: "messages", named: "name", mayAsk: true, repeatable: true},

	MethodResourcesList:      {capability: "resources", array: "resources", cacheable: true, repeatable: true},
	MethodResourcesTemplates: {capability: "resources", array: "resourceTemplates", cacheable: true, repeatable: true},
	MethodResourcesRead:      {capability: "resources", array: "contents", named: "uri", cacheable: true, mayAsk: true, repeatable: true},

	MethodComplete: {capability: "completions", repeatable: true},

	MethodTaskGet:    {named: "taskId", repeatable: true, extension: true},
	MethodTaskUpdate: {named: "taskId", repeatable: true, extension: true},
	MethodTaskCancel: {named: "taskId", repeatable: true, extension: true},
}

// Defined reports whether the specification, in any revision, has requests of
// method from clients to servers.
func Defined(method string) bool {
	m, ok := methods[method]
	return ok && !m.extension
}

// LegacyOnly reports whether method exists in legacy revisions and is gone from
// the modern one.
func LegacyOnly(method string) bool { return methods[method].legacyOnly }

// OnTask reports whether method is one of the three that the tasks extension has.
func OnTask(method string) bool { return methods[method].extension }

// Capability returns the server capability that a method needs, or "" for a
// method that needs none or is not the specification's.
func Capability(method string) string { return methods[method].capability }

// Array returns the member that is an array in all results of method, or "" for a
// method whose results have none.
func Array(method string) string { return methods[method].array }

// Named returns the params member that Mcp-Name mirrors for method, or "" if
// the method has none.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Standard Request Headers;
// tasks extension 2026-07-28, Streamable HTTP: Routing Headers.
func Named(method string) string { return methods[method].named }

// Cacheable reports whether complete results of method carry ttlMs and
// cacheScope.
//
// Spec: 2026-07-28, server/utilities/caching.
func Cacheable(method string) bool { return methods[method].cacheable }

// MayAsk reports whether requests of method may be answered with questions.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Supported Requests.
func MayAsk(method string) bool { return methods[method].mayAsk }

// Repeatable reports whether a request may be sent twice without the server
// doing something twice: lists, reads, prompts/get, completion and discovery, and
// looking at a task, answering it and cancelling it.
func Repeatable(method string) bool { return methods[method].repeatable }
