package groups

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// TestG07AsOneByOne takes clients of both eras to each member at its own endpoint, and to the group of
// all: what they see is the same, but for names, and the bytes are but for cursors, sealed
// states and what mcpbridge says of itself.
func TestG07AsOneByOne(t *testing.T) {
	list, dir := members(), t.TempDir()
	servers := startMembers(t, list, dir)
	b := startBridge(t, servers, fmt.Sprintf("  all: {servers: %s, start_patience: 3m, patience: 30s}\n", namesOf(list)))
	turn := map[string]*sync.Mutex{"memory": new(sync.Mutex)}
	var tours sync.WaitGroup
	for _, c := range clients() {
		// Not with t.Parallel, which would let as many run as there are cores: they wait a lot.
		tours.Go(func() {
			t.Run(c.name, func(t *testing.T) {
				v := startVisitor(t, c, b, dir, turn)
				alone := v.oneByOne(list)
				v.open(v.httpTarget("all"))
				v.compareAll(list, alone, "http")
				v.shut()
				for _, to := range v.otherWays(b) {
					v.open(to)
					v.compareAll(list, alone, to.Transport)
					v.shut()
				}
			})
		})
	}
	tours.Wait()
}

// otherWays returns those to the group beside Streamable HTTP.
func (v *visitor) otherWays(b *bridge) (ways []remote.Target) {
	switch v.name {
	case "typescript-1.32.2":
		ways = append(ways, remote.Target{Transport: "sse", URL: v.tap.URL("/sse/all")})
	case "python-1.30.0":
		ways = append(ways, remote.Target{Transport: "ws", URL: "ws://" + b.listen + "/mcp/all"})
	case "typescript-2.4.0", "go-1.6.1":
		ways = append(ways, b.wrapped("all"))
	}
	return ways
}

// oneByOne visits each member at its own endpoint.
func (v *visitor) oneByOne(list []member) map[string]*tour {
	v.t.Helper()
	alone := make(map[string]*tour)
	for i := range list {
		m := &list[i]
		v.open(v.httpTarget(m.name))
		alone[m.name] = v.everyList()
		alone[m.name].steps = v.steps(m, "")
		v.shut()
	}
	return alone
}

// compareAll visits the group, and compares.
func (v *visitor) compareAll(list []member, alone map[string]*tour, way string) {
	v.t.Helper()
	together := v.everyList()
	bytesToo := way == "http" || way == "sse"
	for _, l := range lists {
		v.compareList(list, alone, together, l.of, l.key, bytesToo)
	}
	compared, refused := 0, 0
	for i := range list {
		m := &list[i]
		for j, got := range v.steps(m, m.name+"__") {
			want := alone[m.name].steps[j]
			if m.asks[j].verbatim && way != "http" {
				continue // the SDK writes its arguments otherwise there
			}
			v.compare(m, j, want, got, way == "http")
			compared++
			if strings.Contains(want.result, `"code":`) || strings.Contains(want.result, `"isError":true`) {
				refused++
			}
		}
	}
	v.t.Logf("%s: %d tools, %d prompts, %d resources, %d templates and %d answers are those of the members (%d of them errors)", way,
		len(together.items["tools"]), len(together.items["prompts"]), len(together.items["resources"]), len(together.items["resourceTemplates"]), compared, refused)
}

// compareList holds that a list of the group has the items of all members, and nothing else. Of a
// URI that two members list, either item will do: they may be on different pages.
func (v *visitor) compareList(list []member, alone map[string]*tour, together *tour, of, key string, bytesToo bool) {
	v.t.Helper()
	want := make(map[string][]string) // by shown name or URI, what members have
	for _, m := range list {
		for i, item := range alone[m.name].items[of] {
			id := shownAs(&m, item, key)
			want[id] = append(want[id], ownItem(&m, inline(item)), ownItem(&m, string(at(alone[m.name].lists[of], i))))
		}
	}
	missing := len(want)
	for i, item := range together.items[of] {
		id, _ := item.(map[string]any)[key].(string)
		for text := range bytesOf(item, at(together.lists[of], i), bytesToo) {
			if !slices.ContainsFunc(list, func(m member) bool { return slices.Contains(want[id], ownItem(&m, text)) }) {
				v.t.Errorf("%s has\n%s\nwant one of\n%s", of, text, strings.Join(want[id], "\n"))
			}
		}
		if want[id] != nil && !slices.ContainsFunc(together.items[of][:i], func(former any) bool { return former.(map[string]any)[key] == id }) {
			missing--
		}
	}
	if missing != 0 {
		v.t.Errorf("%s lacks %d of %d", of, missing, len(want))
	}
}

// bytesOf returns the forms in which an item was seen.
func bytesOf(item any, raw json.RawMessage, both bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		if yield(inline(item)) && both {
			yield(string(raw))
		}
	}
}

// at returns an element; nil if there is none.
func at(all []json.RawMessage, i int) json.RawMessage {
	if i < len(all) {
		return all[i]
	}
	return nil
}

// shownAs returns by what clients of the group know an item of a member.
func shownAs(m *member, item any, key string) string {
	id, _ := item.(map[string]any)[key].(string)
	if key == "name" {
		return m.name + "__" + id
	}
	return id
}

var execution = regexp.MustCompile(`"execution":\{[^}]*\},|,"execution":\{[^}]*\}`)

// ownItem returns an item as the member has it, but for what belongs to the tasks of 2025-11-25,
// which groups don't have.
func ownItem(m *member, text string) string {
	return execution.ReplaceAllString(strings.Replace(text, `"name":"`+m.name+`__`, `"name":"`, 1), "")
}

// compare holds that a step at the group gave what it gave at the member. Where all comes on one
// stream some SDKs forget who wants progress as soon as they have read the result, before they hand
// over what came ahead of it: only what is http is compared whole, and by its bytes.
func (v *visitor) compare(m *member, at int, want, got *seen, http bool) {
	v.t.Helper()
	what := func(kind string) string { return fmt.Sprintf("%s, step %d: %s", m.name, at, kind) }
	if g, w := plain(m, got.result), plain(m, want.result); g != w {
		v.t.Errorf("%s\n%s\nwant\n%s", what("the result is"), g, w)
	}
	if g, w := plainAll(m, got.asked), plainAll(m, want.asked); !slices.Equal(g, w) {
		v.t.Errorf("%s\n%q\nwant\n%q", what("the questions are"), g, w)
	}
	for _, q := range got.asked {
		if !strings.Contains(q, `"message":"`+m.name+`: `) {
			v.t.Errorf("%s %s, want %s: at its beginning", what("the question is"), q, m.name)
		}
	}
	if n := len(got.progress); n > len(want.progress) || http && n < len(want.progress) || !slices.Equal(got.progress, want.progress[:n]) {
		v.t.Errorf("%s %q, want %q", what("the progress is"), got.progress, want.progress)
	}
	if g, w := plainAll(m, got.wire), plainAll(m, want.wire); http && (!slices.Equal(g, w) || len(w) == 0) {
		v.t.Errorf("%s\n%s\nwant\n%s", what("the bytes are"), strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
}

var (
	sealed     = regexp.MustCompile(`"requestState":"[^"]*"`)
	dated      = regexp.MustCompile(`created at [0-9:]+ [AP]M`)
	about      = regexp.MustCompile(`"io\.modelcontextprotocol/serverInfo":\{[^}]*\}`)
	attributed = regexp.MustCompile(`"_meta":\{"dev\.mcpbridge/server":"[^"]*"\},|,"_meta":\{"dev\.mcpbridge/server":"[^"]*"\}|"dev\.mcpbridge/server":"[^"]*",|,"dev\.mcpbridge/server":"[^"]*"`)
)

// plain returns a text of the group as the member's own endpoint has it, but for what is sealed.
func plain(m *member, text string) string {
	text = sealed.ReplaceAllString(text, `"requestState":"…"`)
	text = attributed.ReplaceAllString(text, "")
	text = dated.ReplaceAllString(text, "created at …")
	if strings.Contains(text, `"resultType":"input_required"`) { // the group's own, as the member's is at its endpoint
		text = about.ReplaceAllString(text, "")
	}
	return strings.ReplaceAll(text, `"message":"`+m.name+`: `, `"message":"`)
}

func plainAll(m *member, texts []string) (out []string) {
	for _, text := range texts {
		out = append(out, plain(m, text))
	}
	return out
}

// TestG07RustAsOneByOne has the Rust SDK list the tools and call one, in each era, at the member and
// at the group, over HTTP and over pipes.
func TestG07RustAsOneByOne(t *testing.T) {
	if !exists("bin/tour-rmcp") {
		t.Skip("there is no client on the Rust SDK: interop/build makes it where there is cargo")
	}
	list, dir := members()[:4], t.TempDir()
	b := startBridge(t, startMembers(t, list, dir), fmt.Sprintf("  all: {servers: %s, start_patience: 3m, patience: 30s}\n", namesOf(list)))
	for _, era := range []string{"legacy", "modern", "auto"} {
		t.Run(era, func(t *testing.T) {
			var want []string
			for i := range list {
				m := &list[i]
				alone := rust(t, map[string]any{"era": era, "url": b.at(m.name), "tool": toolOf(m, ""), "arguments": argumentsOf(m, dir)})
				for _, tool := range alone.Tools {
					want = append(want, ownItem(m, string(tool)))
				}
				together := rust(t, map[string]any{"era": era, "url": b.at("all"), "tool": toolOf(m, m.name+"__"), "arguments": argumentsOf(m, dir)})
				if got, want := string(together.Called), string(alone.Called); got != want {
					t.Errorf("%s gives\n%s\nwant\n%s", m.name, got, want)
				}
				if i < len(list)-1 {
					continue
				}
				var got []string
				for _, tool := range together.Tools {
					text := string(tool)
					for j := range list {
						text = ownItem(&list[j], text)
					}
					got = append(got, text)
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("the tools are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				t.Logf("%d tools and %d calls are those of the members", len(got), len(list))
			}
		})
	}
}

// at returns the URL of what mcpbridge has under a name.
func (b *bridge) at(name string) string { return "http://" + b.listen + "/mcp/" + name }

// toolOf and argumentsOf return those of a member's first step.
func toolOf(m *member, prefix string) string {
	var p struct{ Name string }
	if json.Unmarshal(m.asks[0].shown(prefix), &p) != nil {
		return ""
	}
	return p.Name
}

func argumentsOf(m *member, dir string) json.RawMessage {
	var p struct{ Arguments json.RawMessage }
	if json.Unmarshal([]byte(strings.NewReplacer("{dir}", dir, "{client}", "rust").Replace(m.asks[0].params)), &p) != nil {
		return nil
	}
	return p.Arguments
}

// A rustTour is what the Rust SDK prints.
type rustTour struct {
	Tools  []json.RawMessage
	Called json.RawMessage
}

func rust(t *testing.T, told map[string]any) (out rustTour) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, peer("bin/tour-rmcp"))
	cmd.Stdin = strings.NewReader(inline(told))
	var log process.Tail
	cmd.Stderr = &log
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatalf("%v: %v; it wrote:\n%s", told, err, log.String())
	}
	return out
}
