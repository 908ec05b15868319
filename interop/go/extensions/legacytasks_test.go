package extensions

import "testing"

// legacyFindings are what node/legacytasks.mjs finds.
type legacyFindings struct {
	Offered struct {
		List, Cancel struct{}
		Requests     struct {
			Tools struct{ Call struct{} }
		}
	}
	// Plain ran to its end, Ambiguous asked in the middle.
	Plain, Ambiguous struct {
		Told  []string // what callToolStream told, without repetitions
		Text  string
		Asked []string
	}
	Cancelled struct {
		First  string
		Listed bool
		Status string
		Later  string
		Again  int // the code of a second tasks/cancel
	}
	Hosted struct { // a question that the client answered as a task of its own
		TTL   int
		Texts []string
	}
	Unknown int // the code for an id that nobody gave out
}

func wantLegacy() *legacyFindings {
	w := new(legacyFindings)
	w.Plain.Told, w.Plain.Text = []string{"taskCreated", "working", "completed", "result"}, "# Research Report: bridges"
	w.Ambiguous.Told, w.Ambiguous.Text = []string{"taskCreated", "working", "input_required", "result"}, "# Research Report: python (snake)"
	w.Ambiguous.Asked = []string{`The research query "python" could have multiple interpretations. Please clarify what you're looking for:`}
	w.Cancelled.First, w.Cancelled.Listed, w.Cancelled.Again = "working", true, -32602
	w.Cancelled.Status, w.Cancelled.Later = "cancelled", "cancelled"
	w.Hosted.TTL = 600_000
	w.Hosted.Texts = []string{
		"[COMPLETED] User provided the requested information!",
		"User inputs:\n- Name: Ada\n- Favorite Color: blue\n- Agreed to terms: true",
	}
	w.Unknown = -32602
	return w
}

// TestT04LegacyTasks takes a client that knows the tasks of 2025-11-25, and holds some
// itself, to a server that has them, directly and through mcpbridge.
func TestT04LegacyTasks(t *testing.T) {
	everything := "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
	url := start(t, func(_, port string) (env, argv []string) {
		return []string{"PORT=" + port}, node(everything, "streamableHttp")
	})
	command := node(everything, "stdio")
	bridge := serve(t, atURL("web", url), atCommand("pipe", command))
	for name, to := range map[string]target{
		"directly":         {URL: url},
		"serve and HTTP":   {URL: bridge + "web"},
		"serve and a pipe": {URL: bridge + "pipe"},
		"wrap and HTTP":    {Argv: wrap(url)},
		"wrap and a pipe":  {Argv: wrap(append([]string{"--"}, command...)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := new(legacyFindings)
			ask(t, node("node/legacytasks.mjs"), to, got)
			same(t, got, wantLegacy())
		})
	}
}
