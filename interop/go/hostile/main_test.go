package hostile

import (
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// binaries is what TestMain built.
var binaries rig.Binaries

func TestMain(m *testing.M) { os.Exit(rig.Main(m, "", &binaries)) }
