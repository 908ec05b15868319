package day

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// bridge is the mcpbridge that is tried.
var bridge = cmp.Or(os.Getenv("MCPBRIDGE"), bin("mcpbridge"))

// bin returns a program that interop/build made.
func bin(name string) string {
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
	if err != nil {
		panic(err) // there is no working directory
	}
	return path
}

// full reports whether there is time for everything.
func full() bool { return os.Getenv("DAY") == "full" }

func TestMain(m *testing.M) {
	rig.Parallel(len(pairs())) // they wait, most of the time
	os.Exit(m.Run())
}

// TestDay has a client of each era use servers of both, in each way, in random steps.
func TestDay(t *testing.T) {
	seed := rig.Seed(t)
	s := newStand(t)
	defer s.end(t)
	steps := 40
	if full() {
		steps = 1000
	}
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		for _, p := range pairs() {
			t.Run(p.String(), func(t *testing.T) {
				t.Parallel()
				h := fnv.New64()
				fmt.Fprint(h, p)
				newUser(t, s, p, rand.New(rand.NewPCG(seed, h.Sum64()))).spend(int(rig.Int(t, "DAY_STEPS", int64(steps))))
			})
		}
	})
}
