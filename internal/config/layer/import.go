package layer

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// Import converts the servers of a host's file to a file of mcpbridge. Keys that can't be
// converted become comments. Values stay unchanged, including secrets and references to
// variables. It returns a [*key.Error] if the file is not the host's.
func Import(h *hostfile.Host, path string, environ []string, keys *key.Key) ([]byte, error) {
	rep := key.NewReport("")
	root, isJSON, err := readFile(path, rep)
	if err != nil {
		return nil, err
	}
	if err := rep.Err(); err != nil {
		return nil, err
	}
	if !isJSON {
		rep.FailAt(key.Place{Where: path}, "", "is not JSON, as %s has it", h.Title)
		return nil, rep.Err()
	}
	adapted, notes := h.Adapt(root, hostOptions(path, environ, keys))
	if table := adapted.Content[1]; len(table.Content) == 0 {
		rep.FailAt(key.Place{Where: path}, "", "has no servers of %s; is it the right file?", h.Title)
		return nil, rep.Err()
	}
	head := fmt.Sprintf("The servers of %s, from %s.\nServe them with mcpbridge serve -c, or look first with mcpbridge check -c.", h.Title, path)
	return hostfile.YAML(adapted, notes, head)
}
