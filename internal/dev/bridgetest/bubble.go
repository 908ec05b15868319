package bridgetest

import (
	"testing"
	"testing/synctest"
)

// RunBubble runs f as a subtest in a synctest bubble.
func RunBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
