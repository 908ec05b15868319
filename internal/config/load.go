package config

import (
	"fmt"
	"reflect"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
	"github.com/mcpbridge/mcpbridge/internal/config/server"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// Options are the sources of a configuration. The zero value means defaults without
// servers.
type Options struct {
	// Path is the file to read, YAML or JSON; empty for none.
	Path string
	// Servers are servers of the command line. Their Name, Builtin, Command, Args, InheritEnv,
	// URL and Headers are used.
	Servers []Server
	// Environ contains KEY=VALUE entries, as returned by os.Environ. MCPBRIDGE_… sets
	// keys, and ${VAR} refers to them.
	Environ []string
	// Flags override all other sources. FlagKeys has the key of each flag that sets one,
	// levels separated by dots. Unchanged flags set nothing.
	Flags    *pflag.FlagSet
	FlagKeys map[string]string
	// MayMakeToken says that a token may be made where one is needed, and nothing says
	// who clients are: see Config.MakeToken.
	MayMakeToken bool
	// OneUser says that whoever starts the program is its only client: a stored login need
	// not say whose it is, nor clients of a group who they are.
	OneUser bool
	// All says that there is a group of all servers called AllServers, unless a file has one.
	All bool
	// Stop is closed when files are to be read no more. It may be nil.
	Stop <-chan struct{}
}

// A Problem is one mistake, and how to correct it.
type Problem = key.Problem

// Parts divides a message of a mistake; see [key.Parts].
func Parts(message string) (what, next string) { return key.Parts(message) }

// An Error contains all mistakes of a configuration. Its Files are those of [Config.Files].
type Error = key.Error

// Load reads all layers and checks the result. Besides the Config, or the error, it returns
// warnings. The error is an [*Error] that lists every mistake, or wraps the reason why the
// file can't be read.
func Load(o Options) (*Config, []key.Problem, error) {
	rep := key.NewReport(o.name())
	rep.Stop = o.Stop
	given, err := layer.Read(o.layers(), schema, rep)
	if err != nil {
		return nil, nil, err
	}
	if o.All {
		if err = addAll(given); err != nil {
			return nil, nil, err
		}
	}
	c, err := decode(given, rep)
	if err != nil {
		return nil, rep.Sorted(), err
	}
	if o.All {
		c.Default = AllServers
	}
	c.resolve(value.ScopeOf(o.Path, o.Environ, rep), rep)
	c.files, c.File = rep.Files, o.Path
	checker{c, rep, &o, new(int)}.check()
	if len(rep.Errors) == 0 {
		exposure{c, rep}.check(o.Path)
	}
	if err := rep.Err(); err != nil {
		return nil, rep.Sorted(), err
	}
	return c, rep.Sorted(), nil
}

// AllServers is the name of a group of all servers.
const AllServers = "all"

// addAll adds a group of all servers, unless there is one.
func addAll(given *layer.Given) error {
	path := key.Join("groups", AllServers, "servers")
	if given.Exists(path) {
		return nil
	}
	if err := given.Set(path, []any{server.AllServers}); err != nil {
		return fmt.Errorf("adding a group of all servers: %v", err)
	}
	return nil
}

// name returns the name of the configuration in messages.
func (o Options) name() string {
	if o.Path == "" {
		return "command line"
	}
	return o.Path
}

// layers returns the sources of the layers.
func (o Options) layers() layer.Options {
	return layer.Options{Path: o.Path, CommandLine: server.YAML(o.Servers), Environ: o.Environ, Flags: o.Flags, FlagKeys: o.FlagKeys}
}

// decode adds defaults, and decodes the Config.
func decode(given *layer.Given, rep *key.Report) (*Config, error) {
	all := koanf.New(key.Delim)
	base := schema.Defaults(given.Raw())
	if err := all.Load(confmap.Provider(base, ""), nil); err != nil {
		return nil, fmt.Errorf("loading defaults: %v", err)
	}
	if err := all.Merge(given.Koanf); err != nil {
		return nil, fmt.Errorf("merging layers: %v", err)
	}
	var doc document
	if err := all.UnmarshalWithConf("", &doc, koanf.UnmarshalConf{Tag: "koanf", DecoderConfig: strict(nil)}); err != nil {
		return nil, fmt.Errorf("decoding the configuration: %v", err)
	}
	c := doc.Config
	c.Groups = byName(doc.Groups)
	if err := c.decodeServers(given, rep); err != nil {
		return nil, fmt.Errorf("decoding the configuration: %v", err)
	}
	c.AdminChosen = given.Exists("admin")
	c.expanded, c.variables = rep.Expanded, rep.Variables
	if c.Admin == "off" {
		c.Admin = ""
	}
	return &c, nil
}

// strict decodes into a value. The walker has checked every key, so that an unused one is a bug.
func strict(into any) *mapstructure.DecoderConfig {
	return &mapstructure.DecoderConfig{ErrorUnused: true, DecodeHook: listOfOne, TagName: "koanf", Result: into}
}

// listOfOne makes a list of a group that stands for one.
func listOfOne(from, to reflect.Type, v any) (any, error) {
	if from.Kind() == reflect.Map && to.Kind() == reflect.Slice && to.Elem().Kind() == reflect.Struct {
		return []any{v}, nil
	}
	return v, nil
}

// resolve makes the paths of files ones that can be opened, and reads those whose content is
// needed.
func (cfg *Config) resolve(sc *value.Scope, rep *key.Report) {
	cfg.TLS.Resolve(sc, rep, "tls")
	cfg.Replicas.Resolve(sc, rep)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		s.Resolve(sc, rep, key.Join("servers", s.Name))
	}
}
