package firststart

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// words are what the strings of the table of servers are filled in with.
var words = make(map[string]string)

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "saver" {
		if err := serveSaver(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	for name, path := range map[string]string{
		"{bin}": "../../bin", "{node}": "../../node/node_modules/.bin/node", "{npm}": "../../node/node_modules", "{interop}": "../..",
		"{bridge}": cmp.Or(os.Getenv("MCPBRIDGE"), "../../bin/mcpbridge"),
	} {
		abs, err := filepath.Abs(path)
		if err != nil {
			fmt.Println("FAIL:", err)
			os.Exit(1)
		}
		words[name] = abs
	}
	// Tests wait more than they compute; what they compute takes turns (see turn).
	rig.Parallel(16)
	os.Exit(m.Run())
}

// fill replaces the words in s. more are further ones, in pairs.
func fill(s string, more ...string) string {
	for name, path := range words {
		more = append(more, name, path)
	}
	return strings.NewReplacer(more...).Replace(s)
}

func fillAll(argv []string, more ...string) (out []string) {
	for _, arg := range argv {
		out = append(out, fill(arg, more...))
	}
	return out
}

// all reports whether there is time for everything.
func all() bool { return os.Getenv("FIRSTSTART") == "all" }

// turn is held while processes start whose times are taken.
var turn = make(chan struct{}, 1)
