package chaos

import (
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// binaries is what TestMain built.
var binaries rig.Binaries

func TestMain(m *testing.M) {
	rig.Parallel(4) // most of the time the server rests, or is away, or connections are to end
	os.Exit(rig.Main(m, "legacy-go", &binaries))
}
