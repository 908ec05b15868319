package patience

import (
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// binaries is what TestMain built.
var binaries rig.Binaries

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "block" {
		block(os.Args[2])
		return
	}
	rig.Parallel(1000) // all wait at the same time
	os.Exit(rig.Main(m, "legacy-go", &binaries))
}
