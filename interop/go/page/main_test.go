package page

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// programs has the mcpbridge that the tests start, and legacy-go; modern is modern-go.
var (
	programs rig.Binaries
	modern   string
)

// pictures is where screenshots are kept.
var pictures = filepath.Join("..", "..", "bin", "page")

func TestMain(m *testing.M) {
	if err := prepare(); err != nil {
		fmt.Println("FAIL:", err)
		os.Exit(1)
	}
	code := rig.Main(m, "legacy-go", &programs)
	_ = os.RemoveAll(filepath.Dir(modern)) // of no use any more
	os.Exit(code)
}

// prepare has Chromium installed, and builds modern-go.
func prepare() error {
	install := exec.Command("../../chromium")
	install.Stderr = os.Stderr
	if err := install.Run(); err != nil {
		return fmt.Errorf("installing Chromium: %w", err)
	}
	dir, err := os.MkdirTemp("", "mcpbridge-page-")
	if err != nil {
		return err
	}
	modern = filepath.Join(dir, "modern-go")
	if out, err := exec.Command("go", "-C", "../../modern-go", "build", "-o", modern, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("building modern-go: %w\n%s", err, out)
	}
	return os.MkdirAll(pictures, 0o755)
}
