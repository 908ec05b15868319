package main

import (
	"os"
	"testing"
)

func TestNameFlag(t *testing.T) {
	s := serve(t, nil, "--name", "my-docs", "--", os.Args[0], "odd", "exit")
	if len(s.Endpoints) != 1 || s.Endpoints[0].Name != "my-docs" {
		t.Errorf("endpoints = %+v, want my-docs", s.Endpoints)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--name", "a b", "http://h"}, `mcpbridge: --name "a b": a name is part of an endpoint's path; use letters, digits, dots, - and _, at most 64` + "\n"},
		{[]string{"wrap", "--name", "a/b", "--", "x"}, `mcpbridge: --name "a/b": a name is part of an endpoint's path; use letters, digits, dots, - and _, at most 64` + "\n"},
		{[]string{"serve", "--name", "a", "-c", exampleFile}, "mcpbridge: --name names the server of the command line; leave it out, or give a URL, or -- and a command\n"},
	} {
		if got := runCommand(t.Context(), nil, tt.args...); got.err != tt.want || got.code != exitUsage {
			t.Errorf("%q = %d, %q, want %q", tt.args, got.code, got.err, tt.want)
		}
	}
}
