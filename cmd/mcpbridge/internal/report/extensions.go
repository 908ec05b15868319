package report

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An Extension says what happens to an extension that a server declares.
type Extension struct {
	Name     string          `json:"name"`
	Settings json.RawMessage `json:"settings,omitempty"` // as the server wrote them; absent if there are none
	Modern   Treatment       `json:"modern"`             // for clients of 2026-07-28
	Legacy   Treatment       `json:"legacy"`             // for those of 2025-11-25 and before
}

// A Treatment says what clients of one era get.
type Treatment struct {
	Outcome string `json:"outcome"`
	Why     string `json:"why"`
	Rule    string `json:"rule"` // of docs/rules.md
}

// treatments are for clients of either era.
type treatments struct{ modern, legacy Treatment }

// The extensions with treatments of their own.
const (
	extensionUI     = spec.MetaPrefix + "ui"
	extensionEvents = spec.MetaPrefix + "events"
)

// fromModern says what happens to extensions of a server of 2026-07-28, by name; the empty
// name is for all others.
var fromModern = map[string]treatments{
	spec.ExtensionTasks: {
		Treatment{Crosses, "tools may answer with a task; tasks/get, tasks/update and tasks/cancel reach the server, under its own ids", "T-01"},
		Treatment{Changes, "they are not told of it; tools that run as tasks alone are run by mcpbridge, and answered as ordinary calls", "T-24"},
	},
	extensionUI: {
		Treatment{Crosses, "_meta.ui of tools and the contents of ui:// resources, byte for byte; ui/* stays between page and host", "S-01"},
		Treatment{Crosses, "_meta.ui of tools and the contents of ui:// resources, byte for byte; ui/* stays between page and host", "M2L-07"},
	},
	spec.ExtensionSkills: {
		Treatment{Crosses, "skills/list, skills/get and resources/directory/read, with their caching hints", "S-01"},
		Treatment{Crosses, "skills/list, skills/get and resources/directory/read, though the extension is defined for 2026-07-28 alone", "M2L-07"},
	},
	extensionEvents: {
		Treatment{Crosses, "notifications of events/stream pass on its own stream, which lives as long as its client", "T-29"},
		Treatment{Changes, "events/list and events/poll pass; notifications of events/stream are dropped, and counted", "L2M-04"},
	},
	"": {
		Treatment{Crosses, "its requests, results and notifications pass as they are", "S-01"},
		Treatment{Crosses, "as the server declares it, and so do its requests; its notifications are dropped (L2M-04), results of types of its own are errors (L2M-09)", "M2L-07"},
	},
}

// fromLegacy says the same for a server of an older revision.
var fromLegacy = map[string]treatments{
	spec.ExtensionTasks: {
		Treatment{Refused, "clients are not told of it: a server of 2025-11-25 can only mean the tasks of that revision", "M2L-07"},
		Treatment{Crosses, "as the server declares it; the tasks of 2025-11-25 are a capability of their own", "S-02"},
	},
	extensionUI: {
		Treatment{Crosses, "_meta.ui of tools and the contents of ui:// resources, byte for byte; ui/* stays between page and host", "M2L-07"},
		Treatment{Crosses, "_meta.ui of tools and the contents of ui:// resources, byte for byte; ui/* stays between page and host", "S-02"},
	},
	"": {
		Treatment{Crosses, "as the server declares it, and so do its requests; its notifications are dropped", "M2L-07"},
		Treatment{Crosses, "its requests, results and notifications pass as they are", "S-02"},
	},
}

// hidden is the treatment of extensions that the configuration hides.
var hidden = Treatment{Refused, "the configuration hides it (extensions.hide, tasks: run or tasks: off)", "T-32"}

// extensions returns what happens to each extension, ordered by name.
func (s *probed) extensions() []Extension {
	table := fromLegacy
	if s.Era == spec.Modern {
		table = fromModern
	}
	var out []Extension
	for k, settings := range wire.Members(s.capability("extensions")) {
		of, known := table[k.String()]
		if !known {
			of = table[""]
		}
		switch name := k.String(); {
		case slices.Contains(s.Settings.Hidden(), name):
			of = treatments{hidden, hidden}
		case name == spec.ExtensionTasks && s.Era == spec.Modern && bothHold(&s.Settings):
			of.legacy = heldByOld
		}
		e := Extension{Name: k.String(), Modern: of.modern, Legacy: of.legacy}
		if len(settings) > len("{}") {
			e.Settings = settings
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Extension) int { return strings.Compare(a.Name, b.Name) })
	return out
}
