package report

import "github.com/mcpbridge/mcpbridge/internal/spec"

// toModern is the table for clients of 2026-07-28 and a legacy server.
var toModern = []row{
	{"tools", NotOffered, "M2L-08", lacks("tools"), whyUndeclared},
	{"prompts", NotOffered, "M2L-08", lacks("prompts"), whyUndeclared},
	{"resources", NotOffered, "M2L-08", lacks("resources"), whyUndeclared},
	{"completion", NotOffered, "M2L-09", lacks("completions"), whyUndeclared},
	{"tools", Crosses, "M2L-08", has("tools"),
		"lists, calls and results, with what the newer revision wants added (resultType, ttlMs, cacheScope)"},
	{"prompts", Crosses, "M2L-08", has("prompts"),
		"lists and prompts, with what the newer revision wants added"},
	{"resources", Crosses, "M2L-08", has("resources"),
		"lists, templates and contents, with what the newer revision wants added"},
	{"lists on several pages", Crosses, "M2L-06", always,
		"cursors are the server's own, in both directions"},
	{"instructions", Crosses, "M2L-05", instructs,
		"part of the answer to server/discover"},
	{"progress", Crosses, "M2L-11", always,
		"on the stream of its own request, under the client's token"},
	{"cancellation", Crosses, "M2L-13", always,
		"a client that closes its response has notifications/cancelled sent to the server"},

	{"tools whose input schema is no object", Refused, "M2L-09", tools(otherInput),
		"clients of 2026-07-28 refuse a list with them; they are left out"},
	{"tools whose input schema names no type", Changes, "M2L-09", tools(noInput),
		"it gets the type object"},
	{"experimental capabilities", Crosses, "M2L-07", members("experimental", false),
		"as the server declares them, and so do their requests"},
	{"extensions", Crosses, "M2L-07", members("extensions", false),
		"as the server declares them, and so do their requests"},
	{"the tasks extension", Refused, "M2L-07", members("extensions", true),
		"it is not carried across the eras"},

	{"changes of the list of tools", Crosses, "M2L-31", heard("tools.listChanged"), whyFollowed},
	{"changes of the list of prompts", Crosses, "M2L-31", heard("prompts.listChanged"), whyFollowed},
	{"changes of the list of resources", Crosses, "M2L-31", heard("resources.listChanged"), whyFollowed},
	{"updates of resources", Crosses, "M2L-34", heard("resources.subscribe"),
		"clients name them in subscriptions/listen; the server has one resources/subscribe for all of them"},
	{"changes of the list of tools", Refused, "M2L-32", unheard("tools.listChanged"), whyUnheard},
	{"changes of the list of prompts", Refused, "M2L-32", unheard("prompts.listChanged"), whyUnheard},
	{"changes of the list of resources", Refused, "M2L-32", unheard("resources.listChanged"), whyUnheard},
	{"updates of resources", Refused, "M2L-32", unheard("resources.subscribe"), whyUnheard},
	{"changes of the list of tools", NotOffered, "M2L-31", hasnt("tools", "listChanged"),
		"the server does not announce them, so that no listen stream is acknowledged for them; synthesize.tools has the gateway look for them"},
	{"changes of the list of prompts", NotOffered, "M2L-31", hasnt("prompts", "listChanged"),
		"the server does not announce them, so that no listen stream is acknowledged for them; synthesize.prompts has the gateway look for them"},
	{"changes of the list of resources", NotOffered, "M2L-31", hasnt("resources", "listChanged"),
		"the server does not announce them, so that no listen stream is acknowledged for them; synthesize.resources has the gateway look for them"},
	{"updates of resources", NotOffered, "M2L-31", hasnt("resources", "subscribe"),
		"the server has no resources/subscribe, so that no listen stream is acknowledged for any URI; synthesize.updates has the gateway look for them"},

	{"completion", Changes, "M2L-09", has("completions"),
		"at most 100 values, as the newer revision wants; more are cut off, with hasMore"},
	{"log messages", Changes, "M2L-12", has("logging"),
		"there is no logging/setLevel: each request says what it wants to hear (logLevel), and hears what is sent while it runs; what is sent outside of any request is dropped"},
}

// toModernIfUsed has what a server may do without declaring it.
var toModernIfUsed = []row{
	{"log messages", Changes, "M2L-12", lacks("logging"),
		"the server declares no logging, so that its level can't be set; what it sends all the same reaches requests that asked for messages"},
	{"questions to the client (elicitation, sampling, roots)", Changes, "M2L-16", always,
		"they end the response as input_required, and the call waits; the client answers by sending it again with inputResponses, so it takes one that does"},
	{"questions to a client that did not declare them", Refused, "M2L-21", always,
		"the server is refused; if its call fails for that, the client gets -32021 with the capabilities it takes"},
	{"questions outside of a call", Refused, "M2L-23", always,
		"nobody is there to be asked: roots/list gets the configured roots, or those last known, others an error"},
	{"calls at the same time that may be asked back", Changes, "M2L-20", overStdio,
		"nothing tells whose a question is, so they run one after the other; lanes.stdio allows for more processes"},
	{"calls at the same time that may be asked back", Changes, "M2L-20", overConn,
		"nothing tells whose a question is, so each runs in a session of its own; lanes.http says in how many at most"},
	{"pages to visit (elicitation by URL)", Changes, "M2L-22", since(spec.Rev20251125),
		"-32042 becomes input_required with the pages, and the retry sends the call anew, several times if need be, until the server is content"},
	{"the state of a session", Changes, "M2L-01", always,
		"clients of one principal with the same capabilities share a session with the server; isolation: request gives each request one of its own"},
	{"responses that broke off", Changes, "M2L-15", overHTTP,
		"the newer revision can't resume them; the gateway does so with the server, as long as the client waits"},
	{"errors of the server's own", Changes, "M2L-10", always,
		"a missing resource (-32002) becomes -32602 with the URI, codes that the newer revision has taken become -32603 with the code in data"},
}

const (
	whyFollowed = "clients follow them with subscriptions/listen"
	whyUnheard  = "the server announces them and gives no stream to do so on: it refused GET"
)

// since holds if the session has a revision or a later one.
func since(rev spec.Revision) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) { return nil, len(s.Revisions) > 0 && s.Revisions[0] >= rev }
}
