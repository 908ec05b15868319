package config

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
)

const exampleFile = "../../config.example.yaml"

// The example runs as it is: the notebook, and defaults for all else.
func TestExampleAsItIs(t *testing.T) {
	c, warnings, err := Load(Options{Path: exampleFile})
	if err != nil || len(warnings) != 0 {
		t.Fatalf("Load = %v, %v, want no mistake", warnings, err)
	}
	want, _, err := Load(Options{Servers: []Server{{Name: "notebook", Builtin: "notebook"}}})
	if err != nil {
		t.Fatal(err)
	}
	c.files, c.File = nil, ""
	if !reflect.DeepEqual(c, want) {
		t.Errorf("the example gives %+v, want the defaults, %+v", c, want)
	}
}

// With every # taken away the example still loads strictly, shows each key's
// true default, and leaves no key out.
func TestExampleUncommented(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	open := regexp.MustCompile(`(?m)^#( *[^\s#])`).ReplaceAllStringFunc(string(data), func(s string) string {
		if s[1] == ' ' && s[2] != ' ' {
			return s // prose
		}
		return s[1:]
	})
	oneWay := regexp.MustCompile(`(?m)^  peers: .*$`).ReplaceAllString(open, "") // instead of engine
	path := write(t, oneWay)
	writeCertificates(t)
	c, warnings, err := Load(Options{Path: path, Environ: []string{"HOME=/home/ada", "DOCS_TOKEN=x", "ALICE_TOKEN=0123456789abcdef", "ISSUER_SECRET=x", "ISSUER_PAGES_SECRET=x", "WIKI_TOKEN=x", "TEAM_SECRET=x", "NATS_PASSWORD=x", "PEER_KEY=VbY7q+Ws0ZtR2gKd8fq2mz0x", "POD_IP=10.0.0.7"}})
	if err != nil || len(warnings) != 1 || warnings[0].Key != "servers.self.upstream_auth.passthrough" {
		t.Fatalf("Load = %v, %v, want no mistake, and to be warned of passthrough alone", warnings, err)
	}
	if got := len(c.Servers); got != 10 {
		t.Fatalf("%d servers, want 10", got)
	}
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(open), &doc); err != nil {
		t.Fatal(err)
	}
	servers := doc["servers"].(map[string]any)
	all := make(map[string]any)
	for _, name := range []string{"crm", "issues", "self"} {
		delete(servers[name].(map[string]any), "era") // which can't be the default there
	}
	delete(servers["files"].(map[string]any), "replicas") // the default of a command is another one
	servers["docs"].(map[string]any)["replicas"] = "any"
	for _, s := range servers {
		all = merged(all, s.(map[string]any))
	}
	for _, name := range []string{"auth"} { // one of several ways each
		doc[name] = merged(doc[name].(map[string]any), all[name].(map[string]any))
		all[name] = doc[name]
	}
	for _, name := range []string{"auth", "public_url", "policy", "rate"} { // as those of a server
		doc["groups"].(map[string]any)["all"].(map[string]any)[name] = all[name]
	}
	documented(t, "", schema, doc)
	documented(t, "servers.*.", serverKey, all)
}

// merged returns what either of two groups has, as far as it goes.
func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for name, v := range b {
		below, isGroup := v.(map[string]any)
		if before, too := out[name].(map[string]any); isGroup && too {
			v = merged(before, below)
		}
		out[name] = v
	}
	return out
}

// documented checks that doc has each key of a group, with its default.
func documented(t *testing.T, path string, of *key.Key, doc map[string]any) {
	t.Helper()
	for _, k := range of.Fields {
		name := k.Name
		v, ok := doc[name]
		if !ok {
			t.Errorf("%s%s is not in the example", path, name)
			continue
		}
		switch {
		case k.Kind == key.Group:
			documented(t, path+name+".", k, v.(map[string]any))
		case k.Kind == key.List && k.Each.Kind == key.Group:
			all := make(map[string]any)
			items, isList := v.([]any)
			if !isList && k.Single {
				items = []any{v}
			}
			for _, item := range items {
				all = merged(all, item.(map[string]any))
			}
			if name == "rules" { // what they allow and deny has the same keys
				both := merged(all["allow"].(map[string]any), all["deny"].(map[string]any))
				all = map[string]any{"allow": both, "deny": both}
			}
			documented(t, path+name+".*.", k.Each, all)
		case k.Kind == key.Table && name != "servers":
			for entry, below := range v.(map[string]any) {
				if len(k.Names) > 0 && !slices.Contains(k.Names, entry) {
					t.Errorf("%s%s.%s is not a name of the schema", path, name, entry)
				}
				documented(t, path+name+"."+entry+".", k.Each, below.(map[string]any))
			}
		case k.Default != nil:
			n := new(yaml.Node)
			if err := n.Encode(v); err != nil {
				t.Fatal(err)
			}
			if got, problem := k.Read(n.Value, n.Value); problem != "" || got != k.Default {
				t.Errorf("%s%s is %v in the example, want the default %v", path, name, v, k.Default)
			}
		}
	}
}
