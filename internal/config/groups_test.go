package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// warned returns the warnings and the mistakes of a configuration, in order.
func warned(t *testing.T, text string) (c *Config, all []string) {
	t.Helper()
	c, warnings, err := Load(Options{Path: write(t, text)})
	for _, w := range warnings {
		all = append(all, "warning "+w.String())
	}
	if err != nil {
		all = append(all, "error "+err.Error())
	}
	return c, all
}

// The members of a group are those that it names, in their order, and in the place of * the others
// that may be in it, in the order of the file.
func TestG17MembersOfGroups(t *testing.T) {
	const servers = `
public_url: https://mcp.example.com
auth: {tokens: [{name: ada, token: 0123456789abcdef}]}
servers:
  d: {builtin: notebook}
  a: {builtin: notebook, auth: none}
  c: {builtin: notebook, disabled: true}
  b: {url: "https://b.example.com", auth: {tokens: [{name: ada, token: 0123456789abcdef}]}}
  p: {url: "https://p.example.com", public_url: "https://p.example.com", era: modern, auth: {jwt: {issuer: "https://id.example.com"}}, upstream_auth: {passthrough: {same_resource: true}}}
groups:
`
	const otherwise = " prove who they are otherwise than those of the group, which would be a way around it; write the same auth for both"
	for _, tt := range []struct {
		name, group string
		members     string
		says        []string
	}{
		{"by name", "{servers: [b, d]}", "b d", nil},
		{"disabled ones are left out", "{servers: [b, c]}", "b", []string{"groups.all.servers.1: c is disabled, and is left out"}},
		{"all that may be in it", `{servers: ["*"]}`, "d b", []string{
			"groups.all.servers.0: clients of a" + otherwise + "; it is left out of the group", "groups.all.servers.0: clients of p" + otherwise + "; it is left out of the group",
		}},
		{"one, and the others", `{auth: none, servers: [a, "*"]}`, "a", []string{
			"groups.all.servers.1: clients of d" + otherwise + "; it is left out of the group", "groups.all.servers.1: clients of b" + otherwise + "; it is left out of the group", "groups.all.servers.1: clients of p" + otherwise + "; it is left out of the group",
		}},
		{"anonymous, as is said", "{auth: none, servers: [a]}", "a", nil},
		{"another auth", "{servers: [d, a]}", "", []string{"error groups.all.servers.1: clients of a" + otherwise}},
		{"nobody", "{servers: [c]}", "", []string{"groups.all.servers.0: c is disabled, and is left out", `error groups.all.servers: has no server that is enabled; name some, or write ["*"] for all`}},
		{"the caller's token", `{auth: {jwt: {issuer: "https://id.example.com"}}, servers: [p]}`, "", []string{
			"error groups.all.servers.0: p gets the token of its caller (passthrough), which is for that server alone, and clients of a group have one for all"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, all := warned(t, servers+"  all: "+tt.group+"\n")
			for i, text := range all {
				kind, text, _ := strings.Cut(text, " ")
				_, text, _ = strings.Cut(text, ": ")
				if all[i] = text; kind == "error" {
					all[i] = "error " + text
				}
			}
			all = slices.DeleteFunc(all, func(text string) bool { return strings.HasPrefix(text, "servers.p.upstream_auth") })
			if !slices.Equal(all, tt.says) {
				t.Errorf("Load says\n%s\nwant\n%s", strings.Join(all, "\n"), strings.Join(tt.says, "\n"))
			}
			if c != nil && strings.Join(c.Group("all").Members, " ") != tt.members {
				t.Errorf("the members are %q, want %s", c.Group("all").Members, tt.members)
			}
		})
	}
}

// What contradicts itself in a group is a mistake.
func TestG17GroupMistakes(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a server's name", "servers: {a: {builtin: notebook}}\ngroups: {a: {servers: [a]}}", "c.yaml:2: groups.a: a server has that name, too, and both would be at /mcp/a; rename one of them"},
		{"a name that is none", "servers: {a: {builtin: notebook}}\ngroups: {a/b: {servers: [a]}}", "c.yaml:2: groups.a/b: a group's name is part of its endpoint's path; use letters, digits, dots, - and _, at most 64"},
		{"no servers", "servers: {a: {builtin: notebook}}\ngroups: {all: {}}", `c.yaml:2: groups.all.servers: has no server that is enabled; name some, or write ["*"] for all`},
		{"a server that is not there", "servers: {files: {builtin: notebook}}\ngroups: {all: {servers: [file]}}", "c.yaml:2: groups.all.servers.0: there is no server file; did you mean files?"},
		{"a server twice", "servers: {a: {builtin: notebook}}\ngroups: {all: {servers: [a, a]}}", "c.yaml:2: groups.all.servers.1: a is in the list already; remove one of them"},
		{"a group in a group", "servers: {a: {builtin: notebook}}\ngroups: {all: {servers: [a]}, some: {servers: [all]}}", "c.yaml:2: groups.some.servers.0: all is a group, and groups don't nest; name its servers"},
		{"one prefix of two", "servers: {a.b: {builtin: notebook}, a-b: {builtin: notebook}}\ngroups: {all: {servers: [a.b, a-b]}}", "c.yaml:2: groups.all.servers: names of a.b and of a-b would both begin with a-b__; write a prefix of its own for one of them, below servers"},
		{"no room for a prefix", "servers: {a: {builtin: notebook, prefix: long-one}}\ngroups: {all: {servers: [a], name_max: 20}}", "c.yaml:2: groups.all.name_max: 20 has no room for the prefix long-one of a; write 27 at least, or a shorter prefix for the server"},
		{"a prefix that is none", "servers: {a: {builtin: notebook, prefix: a__b}}", `c.yaml:1: servers.a.prefix: "a__b" can't begin names that all clients take; write letters, digits, - and single _, not at the end, at most 24`},
		{"prefer with prefixes", "servers: {a: {builtin: notebook}}\ngroups: {all: {servers: [a], prefer: {x: a}}}", "c.yaml:2: groups.all.prefer: has no effect while names have prefixes, so that no two are alike; write prefix: never, or remove it"},
		{"prefer of nobody", "servers: {a: {builtin: notebook}, b: {builtin: notebook}}\ngroups: {all: {servers: [a], prefix: never, prefer: {x: b}}}", `c.yaml:2: groups.all.prefer.x: "b" is no server of the group; write one of a`},
		{"names that are too long", "servers: {a: {builtin: notebook}}\ngroups: {all: {servers: [a], name_max: 129}}", `c.yaml:2: groups.all.name_max: "129" is too large; write at most 128`},
		{"a policy that matches nobody", "servers: {a: {builtin: notebook}}\ngroups: {all: {servers: [a], policy: {default: deny, rules: [{allow: {principals: [ada]}}]}}}", "c.yaml:2: groups.all.policy.rules.0.allow.principals: all clients of this server are anonymous, so that the rule matches nobody; set auth"},
		{"a token exchange without tokens", "auth: {tokens: [{name: ada, token: 0123456789abcdef}]}\nservers: {a: {url: 'https://a.example', era: modern, auth: {tokens: [{name: ada, token: 0123456789abcdef}]}, upstream_auth: {token_exchange: {issuer: 'https://id.example', client_id: us, client_secret: s}}}}\ngroups: {all: {servers: [a]}}",
			"c.yaml:2: servers.a.upstream_auth.token_exchange: sends a token of the caller's, and clients of this server have none; write auth: {jwt: …}, or use client_credentials\nc.yaml:3: groups.all.servers.0: a exchanges the tokens of its callers, and those of the group have none; write auth: {jwt: …} for the group"},
		{"access tokens for nobody", "servers: {a: {builtin: notebook, public_url: 'https://a.example', auth: {jwt: {issuer: 'https://id.example'}}}}\ngroups: {all: {servers: [a], auth: {jwt: {issuer: 'https://id.example'}}}}", "c.yaml:2: groups.all: its clients send access tokens, which are for one URL, and nothing says which; write public_url: https://mcp.example.com, where clients find mcpbridge"},
		{"certificates of nobody", "servers: {a: {builtin: notebook, auth: none}}\ngroups: {all: {servers: [a], auth: {mtls: {}}}}", "c.yaml:2: groups.all.auth: its clients show certificates, and nothing says whose are valid; write tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem} at the top\nc.yaml:2: groups.all.servers.0: clients of a prove who they are otherwise than those of the group, which would be a way around it; write the same auth for both"},
		{"a key of servers", "servers: {a: {builtin: notebook}}\ngroups: {all: {servers: [a], era: modern}}", "c.yaml:2: groups.all.era: unknown key; known here: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Load(Options{Path: write(t, tt.in+"\n")})
			if err == nil || err.Error() != tt.want && !(strings.HasSuffix(tt.want, ": ") && strings.HasPrefix(err.Error(), tt.want)) {
				t.Errorf("Load = %v\nwant   %s", err, tt.want)
			}
		})
	}
}

// * leaves out a server whose prefix another one has.
func TestG17AllButOneOfAPrefix(t *testing.T) {
	c, all := warned(t, "servers: {a.b: {builtin: notebook}, a-b: {builtin: notebook}, c: {builtin: notebook}}\ngroups: {all: {servers: ['*']}}\n")
	want := "warning c.yaml:2: groups.all.servers.0: names of a-b and of a.b would both begin with a-b__; write a prefix of its own for one of them; it is left out of the group"
	if len(all) != 1 || all[0] != want || !slices.Equal(c.Groups[0].Members, []string{"a.b", "c"}) {
		t.Errorf("Load says %q, members %q", all, c.Groups[0].Members)
	}
}

// Groups have defaults, and the environment sets their keys.
func TestGroupsInAllLayers(t *testing.T) {
	c, _, err := Load(Options{
		Path:    write(t, "servers: {a: {builtin: notebook}, b: {builtin: notebook}}\ngroups: {b-all: {servers: [b, a]}, all: {servers: ['*']}}\n"),
		Environ: []string{"MCPBRIDGE_GROUPS__ALL__PATIENCE=5s", "MCPBRIDGE_GROUPS__ALL__SERVERS=[b]"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if g := c.Group("all"); g.Patience != 5*time.Second || !slices.Equal(g.Members, []string{"b"}) || g.StartPatience != 20*time.Second || !g.Attribute || g.NameMax != 64 || g.Prefix != "always" || g.OnMissing != "leave_out" {
		t.Errorf("the group is %+v", g)
	}
	if c.Groups[0].Name != "all" || c.Groups[1].Name != "b-all" || c.Group("none") != nil || c.Server("none") != nil {
		t.Errorf("the groups are %+v", c.Groups)
	}
}

// What clients of a group prove themselves with is a secret.
func TestSecretsOfGroups(t *testing.T) {
	auth := "{tokens: [{name: ada, token: 0123456789abcdef}]}"
	c, all := warned(t, "servers: {a: {builtin: notebook, auth: "+auth+"}}\ngroups: {all: {servers: [a], auth: {tokens: [{name: ada, token: 0123456789abcdef}]}}}\n")
	if len(all) > 0 && !strings.Contains(all[0], "chmod") || c == nil || !c.Authenticates() {
		t.Fatalf("Load says %q", all)
	}
	c.Servers = nil
	if !slices.Contains(c.Secrets(), "0123456789abcdef") || !c.Authenticates() {
		t.Errorf("the secrets are %q", c.Secrets())
	}
}
