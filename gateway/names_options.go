package gateway

import "github.com/mcpbridge/mcpbridge/internal/names"

// A Shown says which tools, prompts or resources of a server clients see, and how. What they
// don't see is refused as what the server does not have. Names are the server's own, and of
// resources their URIs. In Allow and Deny, * stands for any text.
type Shown struct {
	// Allow has those that clients see. Nil means all.
	Allow []string
	// Deny has those that they don't see, whatever the case, even if Allow has them.
	Deny []string
	// Rename has new names for tools and prompts, by their own ones. Clients see and use these
	// alone, and the server gets its own.
	Rename map[string]string
	// Describe has descriptions of tools and prompts instead of the server's, by their own
	// names or by their new ones.
	Describe map[string]string
}

// names returns what clients see of the server; nil for everything as it is.
func (s *ServerOptions) names() (*names.Map, error) {
	return names.New(names.Options{Tools: names.Part(s.Tools), Prompts: names.Part(s.Prompts), Resources: names.Part(s.Resources)})
}
