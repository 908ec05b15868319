package hostfile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Stay returns the servers of a file that can't be moved, with the reason, and the others.
func (g *Group) Stay(data []byte) (stay []Change, move []string, err error) {
	entries, err := g.list(data)
	if err == nil {
		entries, err = g.chosen(entries)
	}
	if err != nil {
		return nil, nil, err
	}
	why := func(en *entry) string {
		none := func(string) bool { return false }
		return cmp.Or(g.whyStay(en, none), whyStayTOML(en))
	}
	if g.Host != codex {
		v, _ := parse(data) // as before
		t, out := g.tableOf(data, &v), g.keptOut(&v)
		why = func(en *entry) string { return cmp.Or(t.whyElsewhere(en), g.whyStay(en, out), t.whyTwice(en)) }
	}
	for _, en := range entries {
		if why := why(en); why != "" {
			stay = append(stay, Change{Server: en.name, Why: why})
			continue
		}
		move = append(move, en.name)
	}
	return stay, move, nil
}

// whyStay returns why a server can't be moved, or "".
func (g *Group) whyStay(en *entry, out func(string) bool) string {
	text := string(en.text)
	switch {
	case g.isEntry(en):
		return "runs the servers that were moved"
	case en.object == nil:
		return "is not an object"
	case en.isWrapped(g.Binary):
		return "runs under mcpbridge by itself already; to move it, too, uninstall that first"
	case en.literal("disabled") == "true", en.literal("enabled") == "false", out(en.name):
		return "is disabled, and stays so that it can be enabled in " + g.Host.Title
	case strings.Contains(text, "${input:"):
		return g.Host.Title + " asks the user for what it needs (${input:…})"
	case en.literal("sandboxEnabled") == "true":
		return "runs in a sandbox of " + g.Host.Title + ", which mcpbridge has not"
	case aboutFolder.MatchString(text) && g.inUsersFile():
		return "is told which folder " + g.Host.Title + " works in, which the file does not say"
	case !g.Host.expands() && strings.Contains(text, "${"):
		return "has ${…}, which " + g.Host.Title + " passes on as it is, and mcpbridge replaces"
	}
	return g.reasonToSkip(en)
}

// inUsersFile reports whether the host's file is that of a user, and not that of a project.
func (g *Group) inUsersFile() bool {
	folder := workspace(under(g.Here, g.Path))
	return folder == "" || folder == g.Home
}

// literal returns the text of a member that is no list and no object, or "".
func (en *entry) literal(name string) string {
	if m := member(en.object, name); m != nil {
		l, _ := m.Value.Value.(hujson.Literal)
		return string(l)
	}
	return ""
}

// whyElsewhere returns why a server that is not in the table can't be moved.
func (t *table) whyElsewhere(en *entry) string {
	if p := t.named(en.name); p != nil && p.path == en.path {
		return ""
	}
	folder, _, _ := strings.Cut(en.path, "\x00")
	return "is for " + folder + " alone"
}

// whyTwice returns why one of several servers of a name can't be moved.
func (t *table) whyTwice(en *entry) string {
	isSame := func(p *placed) bool { return p.name == en.name }
	if at := slices.IndexFunc(t.list, isSame); at >= 0 && slices.ContainsFunc(t.list[at+1:], isSame) {
		return "has the name of another server of the file"
	}
	return ""
}
