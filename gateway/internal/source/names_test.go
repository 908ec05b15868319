package source_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/source"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// While a server's URL is changed, replicas with the former one do not watch through one with
// the next.
func TestAnotherDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRigOf(t, func(name string) source.Names {
			n := source.Names{Server: "files", Definition: "former"}
			if name == "c" {
				n.Definition = "next"
			}
			return n
		}, nil, "a", "b", "c")
		for _, name := range []string{"a", "b", "c"} {
			r.by[name].follow("ada", "u:1")
		}
		quiet()
		r.wantSubscriptions("two of one definition, and one of another", 2, "u:1")
	})
}

// claimless is an engine that knows of members alone.
type claimless struct{ *replicastest.Engine }

func (claimless) Claim(context.Context, string) (replicas.Claim, error) {
	return replicas.Claim{}, replicas.ErrNoClaims
}
func (claimless) Holder(string) (replicas.Claim, bool) { return replicas.Claim{}, false }
func (claimless) Seize(context.Context, string, replicas.Claim) (replicas.Claim, error) {
	return replicas.Claim{}, replicas.ErrNoClaims
}
func (claimless) Release(string) {}

// Without claims, what one replica serves is watched by the one that serves it: what the server
// tells to that session alone is heard. It dies: the next one watches.
func TestChosenWithoutClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := source.Names{Server: "files", Whole: true}
		r := newRigOf(t, func(string) source.Names { return names }, func(e *replicastest.Engine) replicas.Engine { return claimless{e} }, "a", "b", "c")
		by := make(map[string]*follower)
		for _, name := range []string{"a", "b", "c"} {
			by[name] = r.by[name].follow("ada", "u:1")
		}
		quiet()
		r.wantSubscriptions("one watches for all", 1, "u:1")
		chosen := r.by["a"].engine.View().Choose(names.OfPrincipal("ada"))
		r.by[chosen.Instance].kill()
		quiet()
		r.wantSubscriptions("the next one watches", 1, "u:1")
		for name, f := range by {
			if f.take(); name == chosen.Instance {
				continue
			}
			r.server.push("u:1")
			f.want("a change after the death of the first", "u:1")
			for other, g := range by {
				if other != name {
					g.take()
				}
			}
		}
	})
}

// Servers of which each replica has one are watched by each replica, without claims.
func TestEachWithoutClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRigOf(t, nil, func(e *replicastest.Engine) replicas.Engine { return claimless{e} }, "a", "b")
		r.by["a"].follow("ada", "u:1")
		r.by["b"].follow("ada", "u:1")
		quiet()
		r.wantSubscriptions("each by itself", 2, "u:1")
	})
}

// All profiles of a principal have one name, and no two principals have one, nor do two servers.
func TestNames(t *testing.T) {
	n := source.Names{Server: "files", Definition: "d", Whole: true}
	ada, adas, bob := mcp.Profile{Scope: "files/1", Principal: "ada"}, mcp.Profile{Scope: "files/2", Principal: "ada"}, mcp.Profile{Scope: "files/3", Principal: "bob"}
	if n.Of(ada) != n.Of(adas) || n.Of(ada) != n.OfPrincipal("ada") {
		t.Error("the profiles of a principal have several names")
	}
	each := source.Names{Server: "files", Definition: "d"}
	seen := map[string]bool{}
	for _, name := range []string{n.Of(ada), n.Of(bob), each.Of(ada), each.Of(adas), source.Names{Server: "other", Definition: "d", Whole: true}.Of(ada), source.Names{Server: "files", Definition: "e", Whole: true}.Of(ada)} {
		if seen[name] {
			t.Errorf("%s names two things", name)
		}
		seen[name] = true
	}
}

// What is one process stays with its owner as long as the engine hears that: it serves whoever
// reaches it.
func TestOneProcessIsNotSeized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := source.Names{Server: "files", Whole: true}
		r := newRigOf(t, func(string) source.Names { return names }, nil, "a", "b")
		r.by["a"].follow("ada", "u:1")
		r.by["b"].follow("ada", "u:1")
		quiet()
		r.cut("a", "b", true)
		r.by["a"].breakStreams("b")
		time.Sleep(5 * time.Minute)
		name := names.OfPrincipal("ada")
		for _, rep := range r.by {
			if c, held := rep.engine.Holder(name); !held || c.Holder.Instance != "a" || c.Epoch != 1 {
				t.Errorf("%s takes %+v for the claim, want that of a", rep.name, c)
			}
		}
	})
}
