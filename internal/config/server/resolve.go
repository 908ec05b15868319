package server

import (
	"maps"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// readEnvFile adds the variables of env_file to a command's environment. Variables in env
// override them.
func (s *Options) readEnvFile(sc *value.Scope, rep *key.Report, path string) {
	if s.EnvFile == "" || s.Command == "" {
		return
	}
	s.EnvFile = sc.PathOf(rep, path, s.EnvFile)
	env, err := sc.EnvFile(s.EnvFile)
	if err != nil {
		rep.Fail(path, "%v", err)
		return
	}
	maps.Copy(env, s.Env)
	s.Env = env
}

// Resolve makes the paths of files below path ones that can be opened, and reads those whose
// content is needed.
func (s *Options) Resolve(sc *value.Scope, rep *key.Report, path string) {
	s.TLS.Resolve(sc, rep, key.Join(path, "tls"))
	if !s.Disabled {
		s.readEnvFile(sc, rep, key.Join(path, "env_file"))
		s.UpstreamAuth.Resolve(sc, rep, key.Join(path, "upstream_auth"))
	}
}
