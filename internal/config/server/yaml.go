package server

import (
	"go.yaml.in/yaml/v3"
)

// YAML returns servers of the command line as YAML, as a file would contain them; nil for
// none.
func YAML(servers []Options) *yaml.Node {
	if len(servers) == 0 {
		return nil
	}
	scalar := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
	all := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range servers {
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, kv := range s.Ways() {
			n.Content = append(n.Content, scalar(kv[0]), scalar(kv[1]))
		}
		if len(s.Args) > 0 {
			args := &yaml.Node{Kind: yaml.SequenceNode}
			for _, a := range s.Args {
				args.Content = append(args.Content, scalar(a))
			}
			n.Content = append(n.Content, scalar("args"), args)
		}
		if s.InheritEnv {
			n.Content = append(n.Content, scalar("inherit_env"), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
		}
		if len(s.Headers) > 0 {
			headers := &yaml.Node{Kind: yaml.MappingNode}
			for _, name := range s.HeaderNames() {
				headers.Content = append(headers.Content, scalar(name), scalar(s.Headers[name]))
			}
			n.Content = append(n.Content, scalar("headers"), headers)
		}
		all.Content = append(all.Content, scalar(s.Name), n)
	}
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar("servers"), all}}
}
