package layer

import (
	"strings"

	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
)

// flags reads the flags that are set and have a key.
func (r *reader) flags() koanf.Provider {
	return posflag.ProviderWithFlag(r.Flags, key.Delim, nil, func(f *pflag.Flag) (string, any) {
		dotted, ok := r.FlagKeys[f.Name]
		if !ok || !f.Changed {
			return "", nil
		}
		path, k := resolve(r.keys, strings.Split(dotted, "."), &Given{Koanf: koanf.New(key.Delim)})
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.Value.String()}
		v, ok := r.walker("--"+f.Name).value(n, k, path)
		if !ok {
			return "", nil
		}
		return path, v
	})
}
