package config

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/hosts"
)

// Import converts the servers of a host's file to a file of mcpbridge. Keys that can't be
// converted become comments. Values stay unchanged, including secrets and references to
// variables. It returns an [*Error] if the file is not the host's.
func Import(h *hosts.Host, path string, environ []string) ([]byte, error) {
	rep := newReport()
	root, isJSON, err := readFile(path, rep)
	if err != nil {
		return nil, err
	}
	if err := rep.err(); err != nil {
		return nil, err
	}
	if !isJSON {
		rep.fail(place{where: path}, "", "is not JSON, as %s has it", h.Title)
		return nil, rep.err()
	}
	adapted, notes := h.Adapt(root, hostOptions(path, environ))
	if table := adapted.Content[1]; len(table.Content) == 0 {
		rep.fail(place{where: path}, "", "has no servers of %s; is it the right file?", h.Title)
		return nil, rep.err()
	}
	head := fmt.Sprintf("The servers of %s, from %s.\nServe them with mcpbridge serve -c, or look first with mcpbridge check -c.", h.Title, path)
	return hosts.YAML(adapted, notes, head)
}
