package sessions

import (
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// binaries is what TestMain built.
var binaries rig.Binaries

func TestMain(m *testing.M) {
	rig.Parallel(4) // most of the time streams are to settle
	os.Exit(rig.Main(m, "modern-go", &binaries))
}
