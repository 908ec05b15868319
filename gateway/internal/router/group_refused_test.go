package router

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// A subscription that is refused has its line in the audit log, once for a request and a resource, as
// a refused call has: at a server's own endpoint, of a group by its own policy, and of the member whose
// policy it is, with the group. A list that is followed beside it has none of its own.
func TestG03RefusedSubscriptionsAreAudited(t *testing.T) {
	for _, era := range bothEras {
		for server, want := range map[string][]string{
			"old": {"old METHOD x://secret deny refused", "old METHOD x://one allow ok"},
			"new": {"new METHOD n://secret deny refused", "new METHOD n://one allow ok"},
			"all": {"all METHOD x://group deny refused", "old all METHOD x://secret deny refused", "new all METHOD n://secret deny refused", "all METHOD x://one allow ok"},
		} {
			t.Run(server+"/"+era.String(), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "audit")
				log, err := audit.Open(audit.Options{Path: path})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = log.Close() })
				r := newGroupRig(t, func(o *Options) {
					o.Audit = log
					for i := range o.Servers {
						o.Servers[i].Access.Audit = log
						o.Servers[i].Access.Policy = policy.New(true, []policy.Rule{{Deny: true, Resources: [][]string{{"x://secret"}, {"*://secret"}, {"x://group"}}[i]}})
					}
				})
				r.old.answer("resources/list", `{"resources":[{"uri":"x://one","name":"n"},{"uri":"x://secret","name":"s"},{"uri":"x://group","name":"g"}]}`)
				var uris []string
				for _, line := range want {
					uris = append(uris, strings.Fields(line[strings.Index(line, "METHOD"):])[1])
				}
				method := spec.MethodSubscribe
				if era == spec.Modern {
					method = spec.MethodListen
				}
				r.follow(t, era, server, uris)
				for i, line := range want {
					want[i] = strings.Replace(line, "METHOD", method, 1)
					if era == spec.Modern && strings.Contains(line, "allow") { // the stream has one line
						want[i] = server + " " + method + " allow ok"
					}
				}
				var got []string
				r.eventually(t, "the audit log is written", func() bool {
					text, _ := os.ReadFile(path)
					got = slices.DeleteFunc(groupLines(t, string(text)), func(l string) bool { return !strings.Contains(l, method) })
					return len(got) >= len(want)
				})
				slices.Sort(got)
				if slices.Sort(want); !slices.Equal(got, want) {
					t.Errorf("the audit log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	}
}

// follow has a client follow resources, and lists.
func (r *groupRig) follow(t *testing.T, era spec.Era, server string, uris []string) {
	t.Helper()
	v := r.visit(t, era, server)
	if era == spec.Modern {
		l := newLines(t, r.openAt(t, http.MethodPost, "/mcp/"+server, modernBody("7", spec.MethodListen,
			`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["`+strings.Join(uris, `","`)+`"]}`), modernHeaders(spec.MethodListen, "")))
		l.want(`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["` + uris[len(uris)-1] + `"]}`)
		return
	}
	for i, uri := range uris {
		if got := v.ask(spec.MethodSubscribe, "", `"uri":"`+uri+`"`); (got.code() == 0) != (i == len(uris)-1) {
			t.Errorf("subscribing to %s = %s", uri, got.body)
		}
	}
}
