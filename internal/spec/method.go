package spec

// A method has the properties of one kind of request from clients.
type method struct {
	legacyOnly bool   // the modern revision does not have it
	capability string // the server capability that it requires
	array      string // the required member of its results that is an array
	named      string // the member of its params that Mcp-Name repeats
	cacheable  bool
	mayAsk     bool
	repeatable bool
	extension  string // which defines it, and not the specification
}

// methods has every request from clients that a revision of the specification or the
// tasks extension defines, and those of the skills extension whose results are cacheable.
// It does not have the tasks of 2025-11-25, which are not translated.
var methods = map[string]*method{
	MethodDiscover: {cacheable: true, repeatable: true},
	MethodListen:   {},

	MethodInitialize:  {legacyOnly: true},
	MethodPing:        {legacyOnly: true},
	MethodSetLevel:    {legacyOnly: true, capability: "logging"},
	MethodSubscribe:   {legacyOnly: true, capability: "resources"},
	MethodUnsubscribe: {legacyOnly: true, capability: "resources"},

	MethodToolsList: {capability: "tools", array: "tools", cacheable: true, repeatable: true},
	MethodToolsCall: &toolsCall,

	MethodPromptsList: {capability: "prompts", array: "prompts", cacheable: true, repeatable: true},
	MethodPromptsGet:  {capability: "prompts", array: "messages", named: "name", mayAsk: true, repeatable: true},

	MethodResourcesList:      {capability: "resources", array: "resources", cacheable: true, repeatable: true},
	MethodResourcesTemplates: {capability: "resources", array: "resourceTemplates", cacheable: true, repeatable: true},
	MethodResourcesRead:      {capability: "resources", array: "contents", named: "uri", cacheable: true, mayAsk: true, repeatable: true},

	MethodComplete: {capability: "completions", repeatable: true},

	MethodTaskGet:    {named: "taskId", repeatable: true, extension: ExtensionTasks},
	MethodTaskUpdate: {named: "taskId", repeatable: true, extension: ExtensionTasks},
	MethodTaskCancel: {named: "taskId", repeatable: true, extension: ExtensionTasks},

	MethodSkillsList: {cacheable: true, repeatable: true, extension: ExtensionSkills},
	MethodSkillsGet:  {cacheable: true, repeatable: true, extension: ExtensionSkills},
}

// toolsCall is the method of most requests, which are asked for its properties a dozen
// times each.
var toolsCall = method{capability: "tools", array: "content", named: "name", mayAsk: true}

// undefined is that of all methods that are not in the table.
var undefined method

func properties(name string) *method {
	if name == MethodToolsCall {
		return &toolsCall
	}
	if m := methods[name]; m != nil {
		return m
	}
	return &undefined
}

// Defined reports whether a revision of the specification defines requests of method from
// clients to servers.
func Defined(method string) bool {
	m := properties(method)
	return m != &undefined && m.extension == ""
}

// LegacyOnly reports whether legacy revisions have method and the modern one does not.
func LegacyOnly(method string) bool { return properties(method).legacyOnly }

// OnTask reports whether method is one of the three methods of the tasks extension.
func OnTask(method string) bool { return properties(method).extension == ExtensionTasks }

// OnHeldTask reports whether method is one by which clients of 2025-11-25 use a task that they hold,
// but for the list of them.
func OnHeldTask(method string) bool {
	return method == MethodTaskGet || method == MethodTaskResult || method == MethodTaskCancel
}

// Capability returns the server capability that a method requires, or "" if it requires
// none or the specification does not define it.
func Capability(method string) string { return properties(method).capability }

// Array returns the member that is an array in all results of method, or "" if there is
// none.
func Array(method string) string { return properties(method).array }

// Lists reports whether method lists what a server has.
func Lists(method string) bool {
	switch method {
	case MethodToolsList, MethodPromptsList, MethodResourcesList, MethodResourcesTemplates:
		return true
	}
	return false
}

// Named returns the member of params that Mcp-Name repeats for method, or "" if there is
// none.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Standard Request Headers;
// tasks extension 2026-07-28, Streamable HTTP: Routing Headers.
func Named(method string) string { return properties(method).named }

// Cacheable reports whether complete results of method have ttlMs and cacheScope.
//
// Spec: 2026-07-28, server/utilities/caching; skills extension, skills/list and skills/get.
func Cacheable(method string) bool { return properties(method).cacheable }

// LeavesState reports whether a server may have state of a client after a request of method:
// after all but discovery, lists and ping.
func LeavesState(method string) bool {
	lists := Cacheable(method) && Named(method) == ""
	return !lists && method != MethodPing
}

// MayAsk reports whether the result of method may be input_required.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Supported Requests.
func MayAsk(method string) bool { return properties(method).mayAsk }

// Repeatable reports whether a request of method may be sent twice without side effects.
// These are lists, reads, prompts/get, completion, discovery, and the requests of the
// tasks extension.
func Repeatable(method string) bool { return properties(method).repeatable }
