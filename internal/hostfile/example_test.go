package hostfile_test

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// A host's file is converted, with comments for settings that are not supported.
func ExampleHost_Adapt() {
	root, err := hostfile.Parse([]byte(`{
  // Gemini CLI
  "mcpServers": {
    "docs": {"httpUrl": "https://docs.example.com/mcp", "trust": true, "timeout": 5000},
  },
}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	adapted, notes := hostfile.Named("gemini").Adapt(root, hostfile.Options{Keys: []string{"url", "type", "timeouts"}})
	text, err := hostfile.YAML(adapted, notes, "From Gemini CLI.")
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// # From Gemini CLI.
	//
	// servers:
	//   # trust: says what the host runs without asking its user; mcpbridge never asks, so it has no effect here
	//   # timeout: 5000 is read as 5s, for timeouts.request: Gemini CLI counts in milliseconds
	//   docs:
	//     url: https://docs.example.com/mcp
	//     type: http
	//     timeouts:
	//       request: 5s
	// <nil>
}

// Only the necessary bytes change.
func ExampleEdit_Install() {
	e := &hostfile.Edit{Host: hostfile.Named("claude"), Binary: "/usr/local/bin/mcpbridge"}
	out, outcomes, err := e.Install([]byte(`{"mcpServers": {"clock": {"command": "clock-mcp" /* mine */}}}`))
	fmt.Printf("%s\n%+v %v\n", out, outcomes, err)
	// Output:
	// {"mcpServers": {"clock": {"command": "/usr/local/bin/mcpbridge", "args": ["wrap", "--", "clock-mcp"] /* mine */}}}
	// [{Server:clock Changed:true Why: Done:}] <nil>
}
