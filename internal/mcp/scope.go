package mcp

import "strings"

// ScopeMark stands in scopes between a server's name and what tells the server from earlier
// ones of that name. No name has it, and nothing else gives scopes a meaning by it.
const ScopeMark = "@"

// ScopePrefix returns the part of a scope that is of one server.
func ScopePrefix(scope string) string {
	prefix, _, _ := strings.Cut(scope, "/") // no server's name has one
	return prefix
}

// ServerOf returns the name of the server that a scope belongs to.
func ServerOf(scope string) string {
	name, _, _ := strings.Cut(ScopePrefix(scope), ScopeMark)
	return name
}

// PlainScope returns a scope without what tells a server from earlier ones of its name. It is
// the same in replicas that were not reloaded equally often.
func PlainScope(scope string) string {
	_, digest, ok := strings.Cut(scope, "/")
	if !ok {
		return ServerOf(scope)
	}
	return ServerOf(scope) + "/" + digest
}
