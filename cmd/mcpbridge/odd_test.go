package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// oddCommand is a server on standard input and output that does what its script
// says, a line for each request.
func oddCommand(args []string) int {
	in := bufio.NewScanner(os.Stdin)
	for line := range strings.SplitSeq(args[0], "\n") {
		verb, text, _ := strings.Cut(line, " ")
		if line == "" || !in.Scan() {
			break
		}
		m, _ := wire.Parse(in.Bytes(), wire.Options{})
		if verb == "exit" {
			fmt.Fprintln(os.Stderr, "unexpected message", m.Method)
			return 1
		}
		fmt.Println(strings.ReplaceAll(text, "%s", m.ID.String()))
	}
	for in.Scan() {
	}
	return 0
}

// pinnedCommand serves the older era, unless something else comes first: then it
// refuses all that follows, as some SDKs do.
func pinnedCommand([]string) int {
	pinned := false
	for in, first := bufio.NewScanner(os.Stdin), true; in.Scan(); first = false {
		m, _ := wire.Parse(in.Bytes(), wire.Options{})
		pinned = pinned || first && m.Method != spec.MethodInitialize
		answer := backtest.SaysTools
		switch {
		case m.ID.IsZero():
			continue
		case pinned:
			answer = backtest.SaysNotYet
		case m.Method == spec.MethodInitialize:
			answer = backtest.SaysWelcome
		}
		fmt.Println(strings.ReplaceAll(answer, "%s", m.ID.String()))
	}
	return 0
}

func init() {
	children["odd"], children["pinned"] = oddCommand, pinnedCommand
}
