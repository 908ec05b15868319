package group

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestG01Prefix(t *testing.T) {
	for server, want := range map[string]string{
		"files": "files", "My.Files-2": "My-Files-2", "a__b": "a_b", "a____b_": "a_b", "a._.b": "a-_-b", "x_.": "x_-",
		"a-name-of-more-than-24-characters": "a-name-of-more-than-24-c", "twenty-three-characters_x": "twenty-three-characters",
	} {
		if got := names.Prefix(server); got != want {
			t.Errorf("Prefix(%s) = %s, want %s", server, got, want)
		}
	}
}

// What can't be served is refused when the group is made.
func TestG01Mistakes(t *testing.T) {
	for _, tt := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Members[1].Prefix = "files" }, `servers "files" and "docs" would both have the prefix "files"`},
		{func(o *Options) { o.Members[1].Prefix = "" }, `"" can't be the prefix of server "docs"`},
		{func(o *Options) { o.Members[1].Prefix = "a__b" }, `"a__b" can't be the prefix`},
		{func(o *Options) { o.Members[1].Prefix = "a_" }, `"a_" can't be the prefix`},
		{func(o *Options) { o.Members[1].Prefix = "a.b" }, `"a.b" can't be the prefix`},
		{func(o *Options) { o.Members[1].Name = "files" }, `server "files" is there twice`},
		{func(o *Options) { o.NameMax = 23 }, `allow 24, or give it a shorter prefix`},
		{func(o *Options) { o.Bare, o.Prefer = true, map[string]string{"x": "notes"} }, `"notes", which is not a member`},
	} {
		r := newRig(t, nil, newFake("files"), newFake("docs"))
		o := r.opts
		o.Members = append([]MemberOptions(nil), o.Members...)
		tt.change(&o)
		if _, err := New(o, r.audience); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `"all"`) {
			t.Errorf("New = %v, want %s", err, tt.want)
		}
	}
}

// fitEverywhere is what clients of all kinds take as a name.
var fitEverywhere = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// randomName returns a name of any characters: some fit, some nearly, and some look as if they
// had a hash.
func randomName(r *rand.Rand) string {
	sets := [][]rune{[]rune("abcXYZ019_-"), []rune("ab_"), []rune("a_- ./:é漢😀\x00\"\\\n"), []rune("0123456789abcdef_")}
	set := sets[r.IntN(len(sets))]
	var name []rune
	for range 1 + r.IntN(90) {
		name = append(name, set[r.IntN(len(set))])
	}
	if r.IntN(10) == 0 {
		return string(name) + fmt.Sprintf("_%016x", r.Uint64())
	}
	return string(name)
}

// owned is what a member calls something.
type owned struct {
	member int
	name   string
}

// 100,000 random pairs of member and name have names of their own that all clients take. Each is
// taken back, at this Back, at that of another replica, and after a restart.
func TestG01NamesGoThereAndBack(t *testing.T) {
	const members, each = 50, 2000
	random := rand.New(rand.NewPCG(1, 2))
	var fakes []*fake
	var pairs []owned
	for i := range members {
		seen := make(map[string]bool)
		f := newFake(fmt.Sprintf("member%d.%s", i, strings.Repeat("x", i%20)))
		for len(seen) < each {
			if name := randomName(random); !seen[name] {
				seen[name] = true
				pairs = append(pairs, owned{i, name})
				f.pages[spec.MethodToolsList] = append(f.pages[spec.MethodToolsList], toolItems(name))
			}
		}
		names := f.pages[spec.MethodToolsList]
		f.pages[spec.MethodToolsList] = [][]string{flat(names[:each/2]), flat(names[each/2:])}
		fakes = append(fakes, f)
	}
	distinct := func(o *Options) {
		for i := range o.Members {
			o.Members[i].Prefix = fmt.Sprintf("m%d", i)
		}
	}
	here, there := newRig(t, distinct, fakes...), newRig(t, distinct, fakes...)
	whose := make(map[string]owned, len(pairs))
	for _, p := range pairs {
		shown := here.shown(p.member, policy.Tool, p.name)
		if !fitEverywhere.MatchString(shown) {
			t.Fatalf("%q is shown as %q", p.name, shown)
		}
		if other, taken := whose[shown]; taken {
			t.Fatalf("%+v and %+v are both shown as %s", p, other, shown)
		}
		if whose[shown] = p; len(whose)%10 == 0 && there.shown(p.member, policy.Tool, p.name) != shown {
			t.Fatalf("another replica has %q in place of %s", there.shown(p.member, policy.Tool, p.name), shown)
		}
	}
	for i, p := range pairs {
		shown := here.shown(p.member, policy.Tool, p.name)
		for _, r := range []*rig{here, there} {
			m, own, err := r.finder.ownerOf(t.Context(), request(spec.MethodToolsCall, ""), policy.Tool, shown)
			if err != nil || m.index != p.member || own != p.name {
				t.Fatalf("%d: the owner of %s is %d, %q, %v, want %+v", i, shown, m.index, own, err, p)
			}
		}
	}
}

func flat(lists [][]string) (out []string) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// A shown name is a function of prefix and own name: nothing else of the group matters.
func TestG01NamesDependOnNothingElse(t *testing.T) {
	alone := newRig(t, nil, newFake("docs"))
	among := newRig(t, nil, newFake("files", "read"), newFake("docs", "read"), newFake("notes", "read"))
	among.members["files"].gone = true
	for _, own := range []string{"read", "a b", strings.Repeat("n", 80), "x_0123456789abcdef"} {
		if a, b := alone.shown(0, policy.Tool, own), among.shown(1, policy.Prompt, own); a != b {
			t.Errorf("%s is shown as %s alone, and as %s among others", own, a, b)
		}
	}
	// So it is in all versions, too.
	for own, want := range map[string]string{
		"read": "docs__read", "_x": "docs___x", "": "docs__", "a b": "docs__a-b_a6417273107f6620",
		"x_0123456789abcdef": "docs__x_0123456789abcdef_09029ca22e02d446", "0123456789ABCDEF": "docs__0123456789ABCDEF_dcf5ac90a2cb8822",
	} {
		if got := alone.shown(0, policy.Tool, own); got != want {
			t.Errorf("%q is shown as %s, want %s", own, got, want)
		}
	}
}

// A name of a member that is away is refused with the member's name, and asks no other one.
func TestG01NamesOfMembersThatAreAway(t *testing.T) {
	docs, files := newFake("docs", "read", "a b"), newFake("files", "read", "a b")
	r := newRig(t, nil, docs, files)
	hashed := r.shown(0, policy.Tool, "a b")
	r = newRig(t, nil, docs, files) // which knows no names
	for why, away := range map[string]func(*fake){
		"it is not served at the moment": func(f *fake) { f.gone = true },
		"connection refused":             func(f *fake) { f.gone, f.err = false, errors.New("connection refused") },
	} {
		docs.change(away)
		_, _, err := r.finder.ownerOf(t.Context(), request(spec.MethodToolsCall, ""), policy.Tool, hashed)
		if err == nil || !strings.Contains(err.Error(), `server "docs" of group "all"`) || !strings.Contains(err.Error(), why) || !mcp.MayTryLater(err) {
			t.Errorf("%s: %v", hashed, err)
		}
		m, own, err := r.finder.ownerOf(t.Context(), request(spec.MethodToolsCall, ""), policy.Tool, "docs__read")
		if docs.gone && (err == nil || !strings.Contains(err.Error(), `server "docs" of group "all"`)) || !docs.gone && (err != nil || m.Name != "docs" || own != "read") {
			t.Errorf("docs__read is of %q, %v", m.Name, err)
		}
	}
	if asked := files.requests(); len(asked) > 0 {
		t.Errorf("another member was asked %v", asked)
	}
}

// What a name could also be taken for is unknown: only what is shown is the name of something.
func TestG01OtherSpellingsAreUnknown(t *testing.T) {
	long := strings.Repeat("n", 70)
	files := newFake("files", "read", "a b", long)
	r := newRig(t, nil, files, newFake("docs"))
	hashed := r.shown(0, policy.Tool, "a b")
	for _, shown := range []string{
		"read", "files", "files__", "FILES__read", "files__a b", "files__" + long, "files_read", "__read", "notes__read", "",
		strings.ToUpper(hashed), hashed[:len(hashed)-1] + "0", "files__a-c" + hashed[len(hashed)-names.HashLen:], "docs" + strings.TrimPrefix(hashed, "files"), "files__re%61d", "files__réad",
	} {
		m, own, err := r.finder.ownerOf(t.Context(), request(spec.MethodToolsCall, ""), policy.Tool, shown)
		var we *wire.Error
		if shown == "files__" { // it may have a tool without a name, for all that is known
			continue
		}
		if !errors.As(err, &we) || we.Code != spec.CodeInvalidParams || we.Message != "Unknown tool: "+shown {
			t.Errorf("the owner of %q is %q, %q, %v", shown, m.Name, own, err)
		}
	}
	if asked := files.requests(); !slices.Equal(asked, []string{spec.MethodToolsList, spec.MethodToolsList}) { // for two that have a hash
		t.Errorf("the member was asked %v", asked)
	}
}

// Whoever comes while a name with a hash is looked for waits for the list.
func TestG01ListsAreReadOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := newFake("files", "a b")
		files.serve = after(time.Second)
		shown := newRig(t, nil, files).shown(0, policy.Tool, "a b")
		r := newRig(t, nil, files)
		for range 100 {
			go func() { // ends with the test
				if m, own, err := r.finder.ownerOf(t.Context(), request(spec.MethodToolsCall, ""), policy.Tool, shown); err != nil || own != "a b" {
					t.Errorf("the owner is %q, %q, %v", m.Name, own, err)
				}
			}()
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n := len(files.requests()); n != 1 {
			t.Errorf("100 calls have the list read %d times", n)
		}
	})
}

// Prompts are named as tools are.
func TestG01Prompts(t *testing.T) {
	files := newFake("files")
	files.pages[spec.MethodPromptsList] = [][]string{toolItems("sum up")}
	r := newRig(t, nil, files)
	list := listing(t, r, request(spec.MethodPromptsList, ""))
	shown, _ := wire.GetString([]byte(list[len(`{"prompts":[`):]), "name")
	m, own, err := newRig(t, nil, files).finder.ownerOf(t.Context(), request(spec.MethodPromptsGet, ""), policy.Prompt, shown)
	if err != nil || m.Name != "files" || own != "sum up" || !fitEverywhere.MatchString(shown) {
		t.Errorf("the owner of %s is %q, %q, %v", shown, m.Name, own, err)
	}
	if _, _, err := r.finder.ownerOf(t.Context(), request(spec.MethodPromptsGet, ""), policy.Prompt, "files__x_0123456789abcdef"); err == nil || err.Error() != "Unknown prompt: files__x_0123456789abcdef (code -32602)" {
		t.Errorf("an unknown prompt: %v", err)
	}
}
