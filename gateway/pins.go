package gateway

import (
	"cmp"

	"github.com/mcpbridge/mcpbridge/internal/replicas/node"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
)

// pinStore returns what keeps the tools that were accepted: the engine of the replicas, if they
// have one, so that all of them have accepted the same; or else a folder. It is nil if there is
// neither.
func (o *Options) pinStore(n *node.Node) pin.Store {
	var folder pin.Store
	if o.PinDir != "" {
		folder = pin.Folder(o.PinDir)
	}
	if n != nil {
		if engine, ok := n.Engine().(pin.Keeper); ok { // names without an engine keep nothing
			return pin.NewShared(engine, folder, cmp.Or(o.Logger, discard))
		}
	}
	return folder
}
