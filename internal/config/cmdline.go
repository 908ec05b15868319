package config

import (
	"strings"

	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/keypath"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
)

// named returns servers of the command line as YAML, as a file would contain them.
func named(servers []Server) (*yaml.Node, []string) {
	scalar := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
	all := &yaml.Node{Kind: yaml.MappingNode}
	var names []string
	for _, s := range servers {
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, kv := range s.ways() {
			n.Content = append(n.Content, scalar(kv[0]), scalar(kv[1]))
		}
		if len(s.Args) > 0 {
			args := &yaml.Node{Kind: yaml.SequenceNode}
			for _, a := range s.Args {
				args.Content = append(args.Content, scalar(a))
			}
			n.Content = append(n.Content, scalar("args"), args)
		}
		if len(s.Headers) > 0 {
			headers := &yaml.Node{Kind: yaml.MappingNode}
			for _, name := range s.HeaderNames() {
				headers.Content = append(headers.Content, scalar(name), scalar(s.Headers[name]))
			}
			n.Content = append(n.Content, scalar("headers"), headers)
		}
		all.Content = append(all.Content, scalar(s.Name), n)
		names = append(names, s.Name)
	}
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar("servers"), all}}, names
}

// flagLayer reads the flags that are set and have a key.
func flagLayer(rep *problem.Report, o Options) koanf.Provider {
	return posflag.ProviderWithFlag(o.Flags, keypath.Delim, nil, func(f *pflag.Flag) (string, any) {
		dotted, ok := o.FlagKeys[f.Name]
		if !ok || !f.Changed {
			return "", nil
		}
		path, k := resolve(strings.Split(dotted, "."), koanf.New(keypath.Delim))
		w := &walker{rep: rep, where: "--" + f.Name}
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.Value.String()}
		v, ok := w.value(n, k, path)
		if !ok {
			return "", nil
		}
		return path, v
	})
}
