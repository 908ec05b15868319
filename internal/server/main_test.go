package server

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// exitsOnRequest makes the test binary a command that exits on its first request.
const exitsOnRequest = "exits-on-request"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == exitsOnRequest {
		bufio.NewScanner(os.Stdin).Scan()
		fmt.Fprintln(os.Stderr, "unexpected message")
		os.Exit(7)
	}
	os.Exit(bridgetest.Main(m))
}
