package gateway

import "time"

// GroupOptions describe a group: several servers at one endpoint, whatever eras they and the
// client speak. Each member is what it is at its own endpoint, with its Tools, Prompts and
// Resources, Policy, Rates, Pin, UpstreamAuth and all else. The zero value of each field but Name
// and Members is useful.
type GroupOptions struct {
	// Name is the last segment of the endpoint's path, as that of a server, of which none has
	// the same. Required.
	Name string
	// Members are names of [Options.Servers], in the order in which lists have what is theirs.
	// Required. Their clients have to prove who they are as those of the group, and none has
	// UpstreamAuth with Passthrough.
	Members []string

	// OwnNames shows tools and prompts by the names that members give them. Otherwise a name
	// begins with the Prefix of its server, and two underscores.
	OwnNames bool
	// Prefer has, with OwnNames, the members that have a name which several have. Without it
	// such a name is shown by none.
	Prefer map[string]string
	// MaxName bounds the names of tools and prompts, in bytes. Longer ones end in a digest. Zero
	// means 64, which all clients take.
	MaxName int

	// Patience is how long a list waits for a member that has answered before, and
	// StartPatience for one that is starting. Zero means 2 s and 20 s.
	Patience, StartPatience time.Duration
	// RequireAll has lists fail while a member is missing. Otherwise they name it in their
	// _meta, and the clients are told when it is back.
	RequireAll bool

	// Unattributed leaves out of the messages of questions which member asks.
	Unattributed bool
	// Instructions are told to clients instead of those of the members.
	Instructions string

	// Auth, PublicURL, Policy and Rates are as those of a server. Policy and Rates have the
	// names that clients of the group see, and those of each member apply, too.
	Auth      *Auth
	PublicURL string
	Policy    *Policy
	Rates     Rates
}
