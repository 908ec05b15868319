package layers

import (
	"os"
	"testing"
)

// The tests read the tree from its root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
