package owner

import (
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }
