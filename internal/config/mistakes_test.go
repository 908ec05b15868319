package config

import (
	"errors"
	"strings"
	"testing"
)

// Every mistake has a message of its own that says where, which key, and what
// to do. The whole message is compared: it is what the user gets.
func TestMistakes(t *testing.T) {
	server := func(s string) string { return "servers:\n  a:\n    " + s + "\n" }
	for _, tt := range []struct{ name, in, want string }{
		{"unknown key", "lisen: x\n" + notebook, "c.yaml:1: lisen: unknown key; did you mean listen?"},
		{"unknown key, case", "Listen: x\n" + notebook, "c.yaml:1: Listen: unknown key; did you mean listen?"},
		{"unknown key, nothing near", notebook + "log: {colour: red}", "c.yaml:2: log.colour: unknown key; known here: access, format, level"},
		{"unknown server key", server("builtin: notebook\n    isolaton: shared"), "c.yaml:4: servers.a.isolaton: unknown key; did you mean isolation?"},
		{"key of a desktop client's near miss", server("builtin: notebook\n    timeout: 60"), "c.yaml:4: servers.a.timeout: unknown key; did you mean timeouts?"},
		{"server's key at the top", "command: x\n" + notebook, "c.yaml:1: command: belongs to a server; move it below servers and the server's name"},
		{"state key too short", "state_keys: [0123456789abcdef, s3cret]\n" + notebook, "c.yaml:1: state_keys.1: is shorter than 16 characters; write a random secret, as openssl rand -base64 32 prints one"},
		{"memory that is none", "limits: {memory: 1MiB}\n" + notebook, "c.yaml:1: limits.memory: is less than 64MiB, which the process needs itself; write more, or 0 for half of what the machine has"},
		{"state keys are a list", "state_keys: s3cret0123456789\n" + notebook, "c.yaml:1: state_keys: want a list, as in [a, b]; found a single value"},
		{"state key that is none", "state_keys: [{s3cret0123456789: x}]\n" + notebook, "c.yaml:1: state_keys.0: want a single value; found keys with values; a text with \": \" in it wants quotes"},
		{"interval without a unit", server("builtin: notebook\n    synthesize: {tools: 30}"), `c.yaml:4: servers.a.synthesize.tools: "30" has no unit; write one such as 300ms, 10s or 5m`},

		{"unknown quirk", server("builtin: notebook\n    quirks: {header-revisions: off}"), "c.yaml:4: servers.a.quirks.header-revisions: unknown name; did you mean header-revision?"},
		{"quirk that is neither on nor off", server("builtin: notebook\n    quirks: {header-revision: false}"), `c.yaml:4: servers.a.quirks.header-revision: "false" is unknown; write on or off`},
		{"another word for all quirks", server("builtin: notebook\n    quirks: strict"), `c.yaml:4: servers.a.quirks: want keys with values below it, as in {key: value}, or off; found a single value`},

		{"policy without a default", server("builtin: notebook\n    policy: {rules: []}"), "c.yaml:4: servers.a.policy: does not say what becomes of what no rule matches; write default: deny, or default: allow"},
		{"rule that is neither", server("builtin: notebook\n    policy: {default: deny, rules: [{}]}"), `c.yaml:4: servers.a.policy.rules.0: has to be one of allow and deny; write it as in - allow: {tools: ["read_*"]}`},
		{"rule that is both", server("builtin: notebook\n    policy: {default: deny, rules: [{allow: {tools: [a]}, deny: {tools: [b]}}]}"), `c.yaml:4: servers.a.policy.rules.0: has to be one of allow and deny; write it as in - allow: {tools: ["read_*"]}`},
		{"rule that allows everything", server("builtin: notebook\n    policy: {default: deny, rules: [{allow: {}}]}"), "c.yaml:4: servers.a.policy.rules.0.allow: it matches everything; say whom or what it is about, or change the default"},
		{"rule whose list was left empty", server("builtin: notebook\n    policy: {default: deny, rules: [{allow: {methods: [tools/call], tools: []}}]}"), "c.yaml:4: servers.a.policy.rules.0.allow.tools: is empty, and would match everything; name something, or remove it"},
		{"empty name in a rule", server("builtin: notebook\n    policy: {default: deny, rules: [{deny: {tools: ['']}}]}"), "c.yaml:4: servers.a.policy.rules.0.deny.tools.0: is empty; write a name or a pattern, such as read_*"},
		{"claim without values", server("builtin: notebook\n    policy: {default: deny, rules: [{allow: {claims: {groups: []}}}]}"), "c.yaml:4: servers.a.policy.rules.0.allow.claims.groups: is empty, and would match everything; name something, or remove it"},
		{"claims that no client has", "auth: {tokens: [{name: ada, token: 0123456789abcdef}]}\n" + server("builtin: notebook\n    policy: {default: allow, rules: [{deny: {claims: {groups: [x]}}}]}"), "c.yaml:5: servers.a.policy.rules.0.deny.claims: only access tokens have claims, so that the rule matches nobody; set auth: {jwt: …}, or name principals"},
		{"scopes that no client has", server("builtin: notebook\n    policy: {default: allow, rules: [{deny: {scopes: [x]}}]}"), "c.yaml:4: servers.a.policy.rules.0.deny.scopes: clients of this server have no scopes, so that the rule matches nobody; set auth with tokens or jwt, or name principals"},
		{"principal that no client is", server("builtin: notebook\n    policy: {default: deny, rules: [{allow: {principals: [ada]}}]}"), "c.yaml:4: servers.a.policy.rules.0.allow.principals: all clients of this server are anonymous, so that the rule matches nobody; set auth"},
		{"rule for a handshake", server("builtin: notebook\n    policy: {default: allow, rules: [{deny: {methods: [initialize]}}]}"), "c.yaml:4: servers.a.policy.rules.0.deny: initialize is always allowed; remove it, or name who may not use the server at all"},
		{"rule that never matches", server("builtin: notebook\n    policy: {default: allow, rules: [{deny: {methods: [completion/complete], tools: [a]}}]}"), "c.yaml:4: servers.a.policy.rules.0.deny: method completion/complete is about none of the tools, prompts and resources that the rule names, so that it would never match; make it a rule of its own"},
		{"rule with a typo", server("builtin: notebook\n    policy: {default: deny, rules: [{allow: {tool: [a]}}]}"), "c.yaml:4: servers.a.policy.rules.0.allow.tool: unknown key; did you mean tools?"},
		{"unknown default", server("builtin: notebook\n    policy: {default: refuse}"), `c.yaml:4: servers.a.policy.default: "refuse" is unknown; write deny or allow`},
		{"burst without a rate", server("builtin: notebook\n    rate: {tools: {x: {burst: 5}}}"), "c.yaml:4: servers.a.rate.tools.x.burst: has no meaning without per_second; write that, too, or concurrent"},
		{"rate that is no number", server("builtin: notebook\n    rate: {server: {per_second: 1/s}}"), `c.yaml:4: servers.a.rate.server.per_second: "1/s" is not a number; write one such as 10 or 0.5`},
		{"rate below zero", server("builtin: notebook\n    rate: {server: {per_second: -1}}"), `c.yaml:4: servers.a.rate.server.per_second: "-1" is not a number; write one such as 10 or 0.5`},
		{"audit that is required without a file", "audit: {required: true}\n" + notebook, "c.yaml:1: audit.required: there is no audit log; write its file, too, as in audit: {file: /var/log/mcpbridge/audit.log, required: true}"},
		{"audit with a typo", "audit: {path: x}\n" + notebook, "c.yaml:1: audit.path: unknown key; known here: file, required"},
		{"audit in a list", "audit: [x]\n" + notebook, "c.yaml:1: audit: want keys with values below it, as in {key: value}, or a single value; found a list"},
		{"relative state folder", "state_dir: state\n" + notebook, `c.yaml:1: state_dir: "state" is relative; write an absolute path, such as /var/lib/mcpbridge`},

		{"duration without a unit", "drain: 10\n" + notebook, `c.yaml:1: drain: "10" has no unit; write one such as 300ms, 10s or 5m`},
		{"not a duration", "drain: soon\n" + notebook, `c.yaml:1: drain: "soon" is not a duration; write one such as 300ms, 10s or 5m`},
		{"negative duration", "drain: -1s\n" + notebook, `c.yaml:1: drain: "-1s" is too small; write at least 0s`},
		{"duration too small", "write_timeout: 1ms\n" + notebook, `c.yaml:1: write_timeout: "1ms" is too small; write at least 100ms`},
		{"duration too large", "keep_alive: 2h\n" + notebook, `c.yaml:1: keep_alive: "2h" is too large; write at most 1h`},
		{"not a size", "limits: {body: 4 MegaByte}\n" + notebook, `c.yaml:1: limits.body: "4 MegaByte" is not a size; write one such as 65536, 64KiB or 4MiB`},
		{"size that was meant in MiB", "limits: {body: 4}\n" + notebook, `c.yaml:1: limits.body: "4" is too small; write at least 1KiB`},
		{"size that overflows", "limits: {body: 99999999999GiB}\n" + notebook, `c.yaml:1: limits.body: "99999999999GiB" is not a size; write one such as 65536, 64KiB or 4MiB`},
		{"not a number", "limits: {sessions: many}\n" + notebook, `c.yaml:1: limits.sessions: "many" is not a whole number`},
		{"number out of range", "limits: {sessions: 0}\n" + notebook, `c.yaml:1: limits.sessions: "0" is too small; write at least 1`},
		{"not a boolean", "allow_anonymous: yes\n" + notebook, `c.yaml:1: allow_anonymous: "yes" is neither true nor false; write one of them`},
		{"unknown log level", "log: {level: verbose}\n" + notebook, `c.yaml:1: log.level: "verbose" is unknown; write debug, info, warn or error`},
		{"no value", "listen:\n" + notebook, `c.yaml:1: listen: has no value; remove the key, or write "" for an empty one`},
		{"list for a value", "listen: [a]\n" + notebook, "c.yaml:1: listen: want a single value; found a list"},
		{"value for a list", server("command: x\n    args: -y"), "c.yaml:4: servers.a.args: want a list, as in [a, b]; found a single value"},
		{"value for a mapping", "limits: 5\n" + notebook, "c.yaml:1: limits: want keys with values below it, as in {key: value}; found a single value"},
		{"list for a mapping", "servers: [a]", "c.yaml:1: servers: want keys with values below it, as in {key: value}; found a list"},

		{"two people's logins at one URL", server("url: https://h/mcp\n    upstream_auth: {oauth: {principal: anonymous}}\n  b:\n    url: https://h/mcp\n    upstream_auth: {oauth: {principal: alice}}"),
			"c.yaml:7: servers.b.upstream_auth.oauth: its login is stored in the place of that of a, since a login is stored by the URL of its server, and it is another's: the last one would be sent for both; write the same principal for both, or per: principal for one, where each user logs in himself"},
		{"unknown era", server("builtin: notebook\n    era: moderm"), `c.yaml:4: servers.a.era: "moderm" is unknown; write auto, legacy, modern or client`},
		{"T-32 tasks hidden by name", server("builtin: notebook\n    extensions:\n      hide:\n      - com.example/x\n      - io.modelcontextprotocol/tasks"),
			"c.yaml:7: servers.a.extensions.hide.1: hides the extension alone, and not the methods of tasks; remove it, and set tasks: off for the server"},
		{"T-32 extension without a name", server("builtin: notebook\n    extensions: {hide: ['']}"), "c.yaml:4: servers.a.extensions.hide.0: is empty; write an extension's name, such as io.modelcontextprotocol/ui, or remove it"},
		{"T-32 unknown word for tasks", server("builtin: notebook\n    tasks: runs"), `c.yaml:4: servers.a.tasks.mode: "runs" is unknown; write auto, on, run or off`},
		{"unknown isolation", server("builtin: notebook\n    isolation: none"), `c.yaml:4: servers.a.isolation: "none" is unknown; write principal, shared or request`},
		{"unknown builtin", server("builtin: notes"), `c.yaml:3: servers.a.builtin: "notes" is unknown; write notebook or modern-notebook`},
		{"unknown type", server("url: http://h\n    type: grpc"), `c.yaml:4: servers.a.type: "grpc" is unknown; write stdio, http, streamable-http, streamableHttp, sse or ws`},
		{"type ws of an HTTP URL", server("url: http://h\n    type: ws"), "c.yaml:4: servers.a.type: ws does not fit the scheme of url; ws goes with ws:// and wss://, http and sse with http:// and https://"},
		{"type http of a WebSocket", server("url: ws://h\n    type: streamable-http"), "c.yaml:4: servers.a.type: http does not fit the scheme of url; ws goes with ws:// and wss://, http and sse with http:// and https://"},
		{"type ws of a command", server("command: x\n    type: ws"), "c.yaml:4: servers.a.type: ws does not fit a server with command; remove it"},
		{"type sse for a command", server("command: x\n    type: sse"), "c.yaml:4: servers.a.type: sse does not fit a server with command; remove it"},
		{"type sse for a modern server", server("url: http://h\n    type: sse\n    era: modern"), "c.yaml:5: servers.a.era: modern does not fit type sse, which only legacy servers have; remove one of them"},
		{"type sse for each client's era", server("url: http://h\n    type: sse\n    era: client"), "c.yaml:5: servers.a.era: client does not fit type sse, which only legacy servers have; remove one of them"},
		{"each client's era in one process", server("command: x\n    isolation: shared\n    era: client"), "c.yaml:5: servers.a.era: client means a process for each era, and isolation: shared one for all clients; remove one of them"},
		{"type of another transport", server("url: http://h\n    type: stdio"), "c.yaml:4: servers.a.type: stdio does not fit a server with url; remove it"},

		{"two transports", server("command: x\n    url: http://h"), "c.yaml:2: servers.a: command and url are both set; remove one of them"},
		{"no transport", server("era: auto"), "c.yaml:2: servers.a: has no builtin, command or url; set one of them"},
		{"server without anything", "servers:\n  a:\n", "c.yaml:2: servers.a: has no builtin, command or url; set one of them"},
		{"args without a command", server("url: http://h\n    args: [x]"), "c.yaml:4: servers.a.args: belongs to servers with command; this one has url, so remove it"},
		{"remembering a URL", server("url: http://h\n    remember: true"), "c.yaml:4: servers.a.remember: belongs to servers with command; this one has url, so remove it"},
		{"remembering how long", "remember: 1d\n" + notebook, `c.yaml:1: remember: "1d" is neither true nor false; write one of them`},
		{"headers without a url", server("command: x\n    headers: {A: b}"), "c.yaml:4: servers.a.headers: belongs to servers with url; this one has command, so remove it"},
		{"two spellings", server("url: http://h\n    serverUrl: http://i"), "c.yaml:4: servers.a.serverUrl: means the same as url, which is also set; remove one of them"},
		{"two spellings of servers", notebook + "mcpServers: {b: {builtin: notebook}}", "c.yaml:2: mcpServers: means the same as servers, which is also set; remove one of them"},
		{"duplicate key", "drain: 1s\ndrain: 2s\n" + notebook, "c.yaml:2: drain: is a duplicate of the key on line 1; remove or rename one of them"},
		{"duplicate server", server("builtin: notebook\n  a: {builtin: notebook}"), "c.yaml:4: servers.a: is a duplicate of the key on line 2; remove or rename one of them"},
		{"unknown anchor", "a: 1\n\nb: *c\n", "c.yaml:3: not readable as YAML or JSON: unknown anchor 'c' referenced; correct it there, or just before"},
		{"no UTF-8", "a: 1\nb: \xff\n", "c.yaml:2: not readable as YAML or JSON: invalid leading UTF-8 octet; correct it there, or just before"},
		{"control character", "a: é\u0085\n\tb: \x00\n", "c.yaml:2: not readable as YAML or JSON: control characters are not allowed; correct it there, or just before"},
		{"wrong on the first line", "a: ]\n", "c.yaml:1: not readable as YAML or JSON: did not find expected node content; correct it there, or just before"},
		{"merge key", "servers:\n  a: &a {builtin: notebook}\n  b: {<<: *a}", "c.yaml:3: servers.b: YAML's << is not supported; repeat the keys, or use an anchor for a whole value"},
		{"server's name", "servers: {my server: {builtin: notebook}}", "c.yaml:1: servers.my server: a server's name is part of its endpoint's path; use letters, digits, dots, - and _, at most 64"},
		{"server's name of 65", "servers: {" + strings.Repeat("a", 65) + ": {builtin: notebook}}", "c.yaml:1: servers." + strings.Repeat("a", 65) + ": a server's name is part of its endpoint's path; use letters, digits, dots, - and _, at most 64"},
		{"no servers", "servers:\n", "c.yaml:1: servers: no servers; add one, for example notebook: {builtin: notebook}"},
		{"empty file", "", "c.yaml: servers: no servers; add one, for example notebook: {builtin: notebook}"},
		{"only disabled servers", "servers: {a: {builtin: notebook, disabled: true}}", "c.yaml:1: servers: every server is disabled; enable one"},

		{"missing variable", server("url: http://h\n    headers: {Authorization: 'Bearer ${NONE}'}"), "c.yaml:4: servers.a.headers.Authorization: environment variable NONE is not set; set it, or write ${NONE:-default}"},
		{"unclosed variable", server("command: x${Y"), "c.yaml:3: servers.a.command: ${ has no closing }; write $${ for a literal ${"},
		{"not a variable", server("command: x${s3cret!}"), "c.yaml:3: servers.a.command: the text in ${…} is not the name of an environment variable; write $${ for a literal ${"},
		{"desktop client's input", server("command: x\n    env: {K: '${input:key}'}"), "c.yaml:4: servers.a.env.K: desktop clients ask the user for ${input:…}; set the environment variable INPUT_KEY instead"},

		{"listen is no address", "listen: 2526\n" + notebook, `c.yaml:1: listen: "2526" is not an address; write host:port, as in 127.0.0.1:2526`},
		{"port out of range", "listen: localhost:70000\n" + notebook, `c.yaml:1: listen: "localhost:70000" is not an address; write host:port, as in 127.0.0.1:2526`},
		{"beyond loopback", "listen: 0.0.0.0:2526\n" + notebook, `c.yaml:1: listen: "0.0.0.0:2526" can be reached from other machines, and nothing says who clients are; write a token that mcpbridge token makes below auth, or 127.0.0.1:2526 here, or set allow_anonymous: true`},
		{"all addresses", "listen: ':2526'\n" + notebook, `c.yaml:1: listen: ":2526" can be reached from other machines, and nothing says who clients are; write a token that mcpbridge token makes below auth, or 127.0.0.1:2526 here, or set allow_anonymous: true`},
		{"admin beyond loopback", "admin: example.com:1\n" + notebook, `c.yaml:1: admin: "example.com:1" can be reached from other machines; set admin_token, or write 127.0.0.1:1, or unix: and the path of a socket`},
		{"admin on listen", "admin: 127.0.0.1:2526\n" + notebook, "c.yaml:1: admin: is the same address as listen; choose another port, or write off"},
		{"origin", "allowed_origins:\n- https://ok.example\n- example.com\n" + notebook, `c.yaml:3: allowed_origins.1: "example.com" is not an origin; write scheme://host, as in https://app.example.com`},
		{"host", "allowed_hosts: [http://h]\n" + notebook, `c.yaml:1: allowed_hosts.0: "http://h" is not a host name; write one such as mcp.example.com, without a port`},
		{"network", "trusted_proxies:\n- 10.0.0.0/8\n- 10.0.0.0/33\n" + notebook, `c.yaml:3: trusted_proxies.1: "10.0.0.0/33" is neither a network nor an address; write one such as 10.0.0.0/8 or 192.0.2.7`},
		{"proxy by name", "trusted_proxies: [proxy.example]\n" + notebook, `c.yaml:1: trusted_proxies.0: "proxy.example" is neither a network nor an address; write one such as 10.0.0.0/8 or 192.0.2.7`},

		{"not an HTTP URL", server("url: ftp://h/s3cret"), "c.yaml:3: servers.a.url: is not a URL of an MCP server; write one such as https://docs.example.com/mcp, or wss://docs.example.com/mcp"},
		{"unreadable URL", server("url: 'http://h/%zz?key=s3cret'"), "c.yaml:3: servers.a.url: is not a URL of an MCP server; write one such as https://docs.example.com/mcp, or wss://docs.example.com/mcp"},
		{"WebSocket without a host", server("url: ws:///s3cret"), "c.yaml:3: servers.a.url: is not a URL of an MCP server; write one such as https://docs.example.com/mcp, or wss://docs.example.com/mcp"},
		{"password in a WebSocket's URL", server("url: wss://u:s3cret@h"), "c.yaml:3: servers.a.url: contains a user name or password, which would appear in logs; write them below headers, as Authorization"},
		{"the handshake's header", server("url: ws://h\n    headers: {Sec-WebSocket-Protocol: x}"), "c.yaml:4: servers.a.headers.Sec-WebSocket-Protocol: is set by mcpbridge itself; remove it"},
		{"password in a URL", server("url: http://u:s3cret@h"), "c.yaml:3: servers.a.url: contains a user name or password, which would appear in logs; write them below headers, as Authorization"},
		{"fragment in a URL", server("url: http://h/#x"), "c.yaml:3: servers.a.url: has a fragment (#…), which is never sent; remove it"},
		{"header's name", server("url: http://h\n    headers: {'X Key': s3cret}"), "c.yaml:4: servers.a.headers.X Key: is not a header's name; use letters, digits and -"},
		{"the transport's header", server("url: http://h\n    headers: {Mcp-Session-Id: x}"), "c.yaml:4: servers.a.headers.Mcp-Session-Id: is set by mcpbridge itself; remove it"},
		{"line break in a header", server("url: http://h\n    headers: {X: \"s3cret\\n\"}"), "c.yaml:4: servers.a.headers.X: contains a line break or another control character, which no header can have; check the source of the value"},
		{"impossible environment", server("command: x\n    env: {A=B: s3cret}"), "c.yaml:4: servers.a.env: contains a variable with an empty name, = in its name, or a zero byte; correct or remove it"},
		{"request over max", server("builtin: notebook\n    timeouts:\n      request: 2m\n      max: 1m"), "c.yaml:4: servers.a.timeouts: request (2m) is longer than max (1m); max bounds a request whatever its progress"},
		{"root that is a path", server("builtin: notebook\n    roots: [file:///ok, /home/ada]"), "c.yaml:4: servers.a.roots.1: is not a file URI; write one such as file:///home/ada/notes, a space as %20"},
		{"root with a space", server("builtin: notebook\n    roots: [file:///my notes]"), "c.yaml:4: servers.a.roots.0: is not a file URI; write one such as file:///home/ada/notes, a space as %20"},
		{"no lanes", server("builtin: notebook\n    lanes: {http: 0}"), `c.yaml:4: servers.a.lanes.http: "0" is too small; write at least 1`},
		{"lanes of another transport", server("builtin: notebook\n    lanes: {ws: 1}"), "c.yaml:4: servers.a.lanes.ws: unknown key; known here: http, stdio"},
		{"keeping private results", server("builtin: notebook\n    cache: {tools/list: {ttl: 1m, keep: true}}"), "c.yaml:4: servers.a.cache.tools/list.keep: the gateway caches only public results, for their ttl; set scope: public and a ttl, or remove it"},
		{"keeping for no time", server("builtin: notebook\n    cache: {tools/list: {scope: public, keep: true}}"), "c.yaml:4: servers.a.cache.tools/list.keep: the gateway caches only public results, for their ttl; set scope: public and a ttl, or remove it"},
		{"keeping discovery", server("builtin: notebook\n    cache: {server/discover: {ttl: 1m, scope: public, keep: true}}"), "c.yaml:4: servers.a.cache.server/discover.keep: the gateway answers server/discover itself, so there is nothing to cache; remove it"},
		{"cache of another method", server("builtin: notebook\n    cache: {tools/lists: {ttl: 1s}}"), "c.yaml:4: servers.a.cache.tools/lists: unknown name; did you mean tools/list?"},
		{"cache scope", server("builtin: notebook\n    cache: {tools/list: {scope: all}}"), `c.yaml:4: servers.a.cache.tools/list.scope: "all" is unknown; write private or public`},

		{"tabs", "servers:\n\ta:\n\t\tbuiltin: notebook\n", "c.yaml:2: this line is indented with a tab, and YAML requires spaces; write two spaces for each tab"},
		{"tabs further down", "servers:\n  a:\n  \tbuiltin: notebook\n", "c.yaml:3: this line is indented with a tab, and YAML requires spaces; write two spaces for each tab"},
		{"a tab that is not to blame", "servers:\n  a: {builtin: notebook,\n\t}\n  b: {\n", "c.yaml:4: not readable as YAML or JSON: did not find expected node content; correct it there, or just before"},
		{"not YAML", "servers:\n  a: {builtin: notebook\n", "c.yaml:1: not readable as YAML or JSON: did not find expected ',' or '}'; a { is not closed, or a text in it wants quotes"},
		{"a key too far left", "servers:\n  a:\n    command: cat\n   args: [x]\n", "c.yaml:4: not readable as YAML or JSON: did not find expected key; the keys of one level have to begin in the same column"},
		{"a package without quotes", "servers:\n  a:\n    args: [-y, @scope/package]\n", `c.yaml:3: not readable as YAML or JSON: found character that cannot start any token; a text that begins with @, ` + "`" + ` or % wants quotes, as in "@scope/package"`},
		{"a text with a colon", "servers:\n  a:\n    headers:\n      Authorization: Bearer: x\n", `c.yaml:4: not readable as YAML or JSON: mapping values are not allowed in this context; the line is indented deeper than its neighbours, or it has a text with ": " in it, which wants quotes`},
		{"two documents", notebook + "---\n" + notebook, "c.yaml:2: a second YAML document begins here; keep one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Load(Options{Path: write(t, tt.in)})
			if err == nil {
				t.Fatalf("Load(%q) = nil, want %q", tt.in, tt.want)
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("Load(%q) =\n%s\nwant\n%s", tt.in, got, tt.want)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("Load(%q) = %q: it repeats a secret", tt.in, err)
			}
		})
	}
}

// All mistakes come at once, in the order of the file.
func TestAllMistakesAtOnce(t *testing.T) {
	_, _, err := Load(Options{Path: write(t, `lissten: x
drain: 10
servers:
  a:
    command: x
    url: http://h
  b:
    url: ${NONE}
`)})
	want := `c.yaml:1: lissten: unknown key; did you mean listen?
c.yaml:2: drain: "10" has no unit; write one such as 300ms, 10s or 5m
c.yaml:4: servers.a: command and url are both set; remove one of them
c.yaml:8: servers.b.url: environment variable NONE is not set; set it, or write ${NONE:-default}`
	if err == nil || err.Error() != want {
		t.Errorf("Load =\n%v\nwant\n%s", err, want)
	}
	if e := new(Error); !errors.As(err, &e) || len(e.Problems) != 4 {
		t.Errorf("Load = %T with %d problems, want an *Error with 4", err, len(e.Problems))
	}
}

// A mistake in the environment is named by its variable, and its value, which
// is often a secret, is not repeated.
func TestMistakesInTheEnvironment(t *testing.T) {
	path := write(t, notebook)
	for _, tt := range []struct{ env, want string }{
		{"MCPBRIDGE_DRAIN=77", "MCPBRIDGE_DRAIN: drain: the value has no unit; write one such as 300ms, 10s or 5m"},
		{"MCPBRIDGE_LOG__LEVEL=s3cret", "MCPBRIDGE_LOG__LEVEL: log.level: the value is unknown; write debug, info, warn or error"},
		{"MCPBRIDGE_ALLOWED_HOSTS=a", "MCPBRIDGE_ALLOWED_HOSTS: allowed_hosts: want a list, as in [a, b]; found a single value"},
		{"MCPBRIDGE_STATE_KEYS=[s3cret]", "MCPBRIDGE_STATE_KEYS: state_keys.0: is shorter than 16 characters; write a random secret, as openssl rand -base64 32 prints one"},
		{"MCPBRIDGE_STATE_KEYS=s3cret", "MCPBRIDGE_STATE_KEYS: state_keys: want a list, as in [a, b]; found a single value"},
		{"MCPBRIDGE_SERVERS__TYPO__ERA=legacy", "MCPBRIDGE_SERVERS__TYPO__ERA: servers.typo: is in no file; correct the server's name, or set its builtin, command or url, too"},
		{"MCPBRIDGE_LISTEN=0.0.0.0:1", `MCPBRIDGE_LISTEN: listen: "0.0.0.0:1" can be reached from other machines, and nothing says who clients are; write a token that mcpbridge token makes below auth, or 127.0.0.1:1 here, or set allow_anonymous: true`},
	} {
		_, _, err := Load(Options{Path: path, Environ: []string{tt.env}})
		if err == nil || err.Error() != tt.want {
			t.Errorf("Load with %s =\n%v\nwant\n%s", tt.env, err, tt.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	_, warnings, err := Load(Options{
		Path: write(t, "inputs: [{id: x}]\nservers:\n  a:\n    builtin: notebook\n    autoApprove: [x]\n    alwaysAllow: []\n"+
			"  b: {command: npx -y foo}\n  c: {command: ~/bin/x, cwd: ~/notes}\n  e: {command: no-such, cwd: /}\n  f: {command: x y, disabled: true}\n"),
		Environ: []string{"MCPBRIDGE_PORT=tcp://10.0.0.1:2526", "MCPBRIDGE_SERVERS={}", "MCPBRIDGE_LIMITS__=1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	want := `MCPBRIDGE_PORT: names no key of the configuration and has no effect; levels are separated by __
MCPBRIDGE_SERVERS: names no key of the configuration and has no effect; levels are separated by __
MCPBRIDGE_LIMITS__: names no key of the configuration and has no effect; levels are separated by __
c.yaml:1: inputs: belongs to desktop clients and has no effect here
c.yaml:5: servers.a.autoApprove: belongs to desktop clients and has no effect here
c.yaml:6: servers.a.alwaysAllow: belongs to desktop clients and has no effect here
c.yaml:7: servers.b.command: there is no program of this name; write its arguments apart: command: npx, args: [-y, foo]
c.yaml:8: servers.c.command: ~ is not expanded here; write ${HOME}/bin/x
c.yaml:8: servers.c.cwd: ~ is not expanded here; write ${HOME}/notes`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("warnings =\n%s\nwant\n%s", s, want)
	}
}
