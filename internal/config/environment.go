package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/layer"
)

// EnvOf returns the environment variables of a server's command, in addition to the minimal
// environment. With inherit_env they include those of environ that are not of mcpbridge:
// without keys of the configuration, and variables that its values refer to.
func (c *Config) EnvOf(s *Server, environ []string) map[string]string {
	if !s.InheritEnv {
		return s.Env
	}
	env := make(map[string]string, len(environ))
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if ok && name != "" && !strings.HasPrefix(strings.ToUpper(name), layer.Prefix) && !slices.Contains(c.variables, name) {
			env[name] = value
		}
	}
	maps.Copy(env, s.Env)
	return env
}
