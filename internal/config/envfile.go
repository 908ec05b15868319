package config

import (
	"maps"

	"github.com/mcpbridge/mcpbridge/internal/config/expand"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
)

// readEnvFile adds the variables of env_file to a command's environment. Variables in env
// override them.
func (s *Server) readEnvFile(sc *expand.Scope, rep *problem.Report, path string) {
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
