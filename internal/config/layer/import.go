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
	root, in, err := readFile(path, rep)
	if err != nil {
		return nil, err
	}
	if err := rep.Err(); err != nil {
		return nil, err
	}
	if want := formatOf(h); in != want {
		rep.FailAt(key.Place{Source: path}, "", "is not %s, as %s has it", want, h.Title)
		return nil, rep.Err()
	}
	adapted, notes := h.Adapt(root, hostOptions(path, environ, keys))
	if table := adapted.Content[1]; len(table.Content) == 0 {
		rep.FailAt(key.Place{Source: path}, "", "has no servers of %s; is it the right file?", h.Title)
		return nil, rep.Err()
	}
	head := fmt.Sprintf("The servers of %s, from %s.\nServe them with mcpbridge serve -c, or look first with mcpbridge check -c.", h.Title, path)
	return hostfile.YAML(adapted, notes, head)
}

func formatOf(h *hostfile.Host) format {
	if h.Extension() == ".toml" {
		return inTOML
	}
	return inJSON
}

// Moved converts servers of a host's file, of which data is the content, to a file of mcpbridge that
// serves them as one, under the same environment, with names of at most nameMax. It returns it with
// what the servers are called there, in the order of the file, and what is different of each.
func Moved(h *hostfile.Host, path string, data []byte, servers []string, nameMax int, environ []string, keys *key.Key) (text []byte, called []string, notes []hostfile.Note, err error) {
	root, err := h.Parse(data)
	if err != nil {
		return nil, nil, nil, err
	}
	adapted, notes := h.Adapt(hostfile.Select(root, servers), hostOptions(path, environ, keys))
	called = hostfile.InheritEnv(adapted)
	hostfile.ShortPrefixes(adapted, h.InOrder(data, servers))
	head := fmt.Sprintf("The servers of %[1]s that stood in %[2]s.\nmcpbridge wrap --install %[3]s --all has moved them here, and --uninstall %[3]s puts them back.\n%[1]s sees what is changed here when it starts mcpbridge again.", h.Title, path, h.Name)
	if text, err = hostfile.YAML(adapted, notes, head); err != nil {
		return nil, nil, nil, err
	}
	return fmt.Appendf(text, "groups:\n  all:\n    servers: [\"*\"]\n    name_max: %d\n", nameMax), called, notes, nil
}
