package extensions

import (
	"strings"
	"testing"
)

// groupTasks starts a server of either era that has tasks, each in a group with one that has none, and
// returns the URLs of the groups, and of the servers. Clients see the names that the servers give.
func groupTasks(t *testing.T) (groups, urls map[string]string) {
	t.Helper()
	groups, urls = make(map[string]string), make(map[string]string)
	var lines []string
	sets := "groups:\n"
	for name, s := range map[string]*taskServer{"typescript": oldServers["typescript"], "python": oldServers["python"], "fastmcp": newServers["fastmcp"]} {
		urls[name] = start(t, s.web)
		lines = append(lines, s.settings(atURL(name, urls[name]), ", tasks: on"))
		sets += "  all-" + name + ": {servers: [beside, " + name + "], prefix: never, attribute: false}\n"
	}
	lines = append(lines, atCommand("beside", node("node/node_modules/@modelcontextprotocol/server-memory/dist/index.js")))
	bridge := serve(t, strings.Join(lines, "\n  ")+"\n"+sets)
	for name := range urls {
		groups[name] = bridge + "all-" + name
	}
	return groups, urls
}

// TestG12TasksInGroups takes clients of both eras to groups: with a server of theirs they find there
// what they find on it directly, and with one of the other era what its own endpoint has for them. Ids
// are the group's, which lists no tasks.
func TestG12TasksInGroups(t *testing.T) {
	groups, urls := groupTasks(t)
	for client, c := range oldClients {
		for _, server := range []string{"typescript", "python"} {
			t.Run(client+" to "+server, func(t *testing.T) {
				t.Parallel()
				errand := c.errand
				errand.Silent = client == "ext-tasks"
				want, got := c.both(t, oldServers[server], errand, urls[server], groups[server])
				delete(want.Offered, "list")
				want.OwnID = false
				same(t, got, want)
			})
		}
		t.Run(client+" to fastmcp", func(t *testing.T) {
			t.Parallel()
			newServers["fastmcp"].playLegacy(t, client, c, groups["fastmcp"])
		})
	}
	for client, argv := range taskClients {
		t.Run(client+" to typescript", func(t *testing.T) {
			t.Parallel()
			oldServers["typescript"].playModern(t, client, argv, groups["typescript"])
		})
		t.Run(client+" to fastmcp", func(t *testing.T) {
			t.Parallel()
			got, want := new(taskFindings), wantTasks(client)
			want.OwnID = false
			errand := taskErrand{target: target{URL: groups["fastmcp"]}, Label: t.Name()}
			ask(t, argv, errand, got)
			errand.Resume = got.Left
			got.Left, got.Session = "", ""
			same(t, got, want)
			resumeTask(t, argv, errand)
		})
	}
}
