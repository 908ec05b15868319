package report

// toLegacy is the table for clients of 2025-11-25 and before, and a server of 2026-07-28.
var toLegacy = []row{
	{"tools", NotOffered, "L2M-06", lacks("tools"), whyUndeclared},
	{"prompts", NotOffered, "L2M-06", lacks("prompts"), whyUndeclared},
	{"resources", NotOffered, "L2M-06", lacks("resources"), whyUndeclared},
	{"completion", NotOffered, "L2M-06", lacks("completions"), whyUndeclared},
	{"tools", Crosses, "L2M-06", has("tools"),
		"lists, calls and results, without what only the newer revision knows (resultType, ttlMs, cacheScope)"},
	{"prompts", Crosses, "L2M-06", has("prompts"),
		"lists and prompts, without what only the newer revision knows"},
	{"resources", Crosses, "L2M-06", has("resources"),
		"lists, templates and contents, without what only the newer revision knows"},
	{"completion", Crosses, "L2M-06", has("completions"),
		"as the server answers"},
	{"lists on several pages", Crosses, "L2M-06", always,
		"cursors are the server's own, in both directions"},
	{"instructions", Crosses, "L2M-01", instructs,
		"part of the answer to initialize"},
	{"progress", Crosses, "L2M-09", always,
		"under the client's token, over all rounds of a call"},
	{"cancellation", Crosses, "L2M-15", always,
		"notifications/cancelled ends the request with the server"},

	{"tools whose input schema is no object", Refused, "L2M-07", tools(neverObject),
		"clients of 2025-11-25 and before refuse a list with them; they are left out"},
	{"tools whose x-mcp-header can't be a header", Refused, "L2M-11", both(overHTTP, tools(mismirrors)),
		"whoever speaks to the server has to leave them out, the gateway too"},
	{"tools whose input schema names no type", Changes, "L2M-07", tools(noInput),
		"it gets the type object"},
	{"tools whose output schema is no object", Changes, "L2M-07", tools(wrapsOutput),
		`wrapped as {"result": …}, in the list and in every result`},
	{"tools with parameters in headers (x-mcp-header)", Changes, "L2M-11", both(overHTTP, tools(mirrors)),
		"older clients send no Mcp-Param-*: the gateway does, by the tools' schemas"},
	{"structured results", Changes, "L2M-06", tools(hasOutput),
		"clients before 2025-06-18 don't know them; where there is no text they get the JSON as text"},

	{"changes of the list of tools", Crosses, "L2M-24", has("tools.listChanged"), whyOptedIn},
	{"changes of the list of prompts", Crosses, "L2M-24", has("prompts.listChanged"), whyOptedIn},
	{"changes of the list of resources", Crosses, "L2M-24", has("resources.listChanged"), whyOptedIn},
	{"updates of resources", Crosses, "L2M-20", has("resources.subscribe"),
		"resources/subscribe is answered once the server has acknowledged the URI on a listen stream"},
	{"changes of the list of tools", NotOffered, "L2M-24", hasnt("tools", "listChanged"), whyNotOffered},
	{"changes of the list of prompts", NotOffered, "L2M-24", hasnt("prompts", "listChanged"), whyNotOffered},
	{"changes of the list of resources", NotOffered, "L2M-24", hasnt("resources", "listChanged"), whyNotOffered},
	{"updates of resources", NotOffered, "L2M-20", hasnt("resources", "subscribe"),
		"the server does not offer them (resources.subscribe): resources/subscribe is an error"},
	{"what extensions let clients listen to", Refused, "L2M-04", members("extensions", false),
		"older clients have no request for it, and notifications that they don't know are dropped"},

	{"extensions", Crosses, "M2L-07", members("extensions", false),
		"as the server declares them, and so do their requests; results of types of their own are errors (L2M-09)"},
	{"experimental capabilities", Crosses, "M2L-07", members("experimental", false),
		"as the server declares them, and so do their requests"},

	{"log messages", Changes, "L2M-12", has("logging"),
		"logging/setLevel sets the level that the gateway puts on each request of the session"},
	{"log messages", NotOffered, "L2M-12", lacks("logging"),
		"the server declares no logging"},
}

// toLegacyIfUsed has what a server may do without declaring it.
var toLegacyIfUsed = []row{
	{"audio", Changes, "L2M-06", has("tools"),
		"clients of 2024-11-05 get a line of text in its place"},
	{"links to resources in results", Changes, "L2M-06", has("tools"),
		"clients before 2025-06-18 get a line of text in their place"},
	{"questions to the client (input_required)", Changes, "L2M-13", always,
		"they become requests on the stream of the call (elicitation, sampling, roots), at most 10 rounds of them; then the gateway sends the call again with the answers"},
	{"questions to a client that did not declare them", Refused, "L2M-13", always,
		"the call fails before anything is asked, with what the client would have to declare"},
	{"pages to visit (elicitation by URL)", Changes, "L2M-14", always,
		"clients that declared elicitation.url are asked, under an id made up for it; for others the call fails"},
	{"choices of several, and sampling with tools", Refused, "L2M-08", always,
		"clients before 2025-11-25 have no form for them, unless they declare sampling.tools: the call fails with that reason"},
	{"what is followed, while more is added", Changes, "L2M-22", notOverHTTP,
		"the connection has one listen stream at a time; when it is replaced, a change that was not can be reported once"},
	{"how long results may be kept (ttlMs, cacheScope)", Changes, "L2M-06", always,
		"older clients are not told; the gateway keeps results itself where cache says so"},
	{"errors of the server's own", Changes, "L2M-09", always,
		"-32020, -32021 and -32022 become -32603 with words that a person can act on, -32042 becomes -32603, other codes stay"},
}

const (
	whyOptedIn    = "the gateway listens for every session, as soon as it is initialized"
	whyNotOffered = "the server does not announce them"
)
