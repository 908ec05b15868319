package trunk

import (
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// binaries is what TestMain built.
var binaries rig.Binaries

func TestMain(m *testing.M) {
	rig.Parallel(6) // most of the time servers rest that were killed too often, or connections are to end
	os.Exit(rig.Main(m, "legacy-go", &binaries))
}
