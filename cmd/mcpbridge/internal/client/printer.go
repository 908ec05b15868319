package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Printer sends requests to one server and prints the responses.
type Printer struct {
	Server        *Client
	Name          string // the server's name on the command line
	Out, Progress io.Writer
	AsJSON        bool // print the messages as they were received
	Whole         bool // print texts about what is listed whole
	Now           func() time.Time

	lastID int64
}

// Close ends what was started for the server.
func (p *Printer) Close() {
	if p.Server.heard != nil {
		p.Server.heard() // who was never asked
	}
	p.Server.Close()
}

// A WordsError says what is wrong with the words of a command line.
type WordsError struct{ text string }

func (e *WordsError) Error() string { return e.text }

func wrongWords(format string, args ...any) error {
	return &WordsError{fmt.Sprintf(format, args...)}
}

func (p *Printer) nextID() wire.ID {
	p.lastID++
	return wire.NumberID(p.lastID)
}

// ListTools prints the tools with the first line of their descriptions.
func (p *Printer) ListTools(ctx context.Context) error {
	tools, err := p.tools(ctx)
	if err != nil {
		return err
	}
	if p.AsJSON {
		return output.Line(p.Out, tools)
	}
	for tool := range wire.Elements(tools) {
		if err := p.entry(tool, "", "name"); err != nil {
			return err
		}
		for _, line := range arguments(tool) {
			if err := output.Paragraph(p.Out, "    ", line, p.Whole); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry prints the name of a list's element, and what it says of itself.
func (p *Printer) entry(item []byte, indent, member string) error {
	name, _ := wire.GetString(item, member)
	text, _ := wire.GetString(item, "description")
	return output.Entry(p.Out, indent, name, text, p.Whole)
}

// tools returns all tools as one JSON array.
func (p *Printer) tools(ctx context.Context) ([]byte, error) {
	all, err := p.All(ctx, spec.MethodToolsList, "tools")
	if err != nil {
		return nil, fmt.Errorf("listing the tools of %s: %w", p.Name, err)
	}
	return all, nil
}

// All returns all pages of a list as one JSON array.
func (p *Printer) All(ctx context.Context, method, member string) ([]byte, error) {
	all := []byte("[")
	for page, err := range upstream.Pages(ctx, method, p.request) {
		if err != nil {
			return nil, err
		}
		for item := range wire.Elements(wire.Get(page, member)) {
			all = append(append(all, item...), ',')
		}
	}
	return wire.CloseArray(all), nil
}

// Items iterates over the items of a list, as they may be printed: the name of each, which its member
// of that name has, and the first line of what it says of itself. An error ends it.
func (p *Printer) Items(ctx context.Context, method, member string) iter.Seq2[string, string] {
	return func(yield func(name, line string) bool) {
		all, _ := p.All(ctx, method, spec.Array(method))
		for item := range wire.Elements(all) {
			name, _ := wire.GetString(item, member)
			text, _ := wire.GetString(item, "description")
			line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
			if !yield(output.Escape(name), output.Escape(line)) {
				return
			}
		}
	}
}

// request returns the result of a request.
func (p *Printer) request(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	m, err := p.Server.do(ctx, call{id: p.nextID(), method: method, params: params})
	return m.Result, err
}

// Call calls a tool and prints its result. The words are its arguments, key=value or
// key:=JSON.
func (p *Printer) Call(ctx context.Context, name string, words []string) error {
	tools, err := p.tools(ctx)
	if err != nil {
		return err
	}
	tool, err := find(tools, name, p.Name)
	if err != nil {
		return err
	}
	schema := wire.Get(tool, "inputSchema")
	args, err := readArguments(name, schema, words)
	if err != nil {
		return err
	}
	notes, err := checkArguments(name, schema, args)
	if err != nil {
		return err
	}
	for _, note := range notes {
		_, _ = output.Printf(p.Progress, "mcpbridge: %s It is sent all the same, since the schema does not refuse it.\n", endedBy(note)) // it is advice
	}
	id := p.nextID()
	result, err := p.do(ctx, call{
		id: id, method: spec.MethodToolsCall, name: name, header: paramHeaders(schema, args),
		params: withArguments(name, args),
		meta:   []wire.Edit{{Name: spec.MetaProgressToken, Value: id.Append(nil)}},
	})
	if err != nil {
		return fmt.Errorf("calling %s at %s: %w", name, p.Name, err)
	}
	return p.answer(name, result)
}

// endedBy returns a sentence with the sign at its end.
func endedBy(sentence string) string {
	if strings.HasSuffix(sentence, "?") {
		return sentence
	}
	return sentence + "."
}

// withArguments returns params with a name and arguments.
func withArguments(name string, args []byte) []byte {
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "name", Value: wire.Quote(name)}, wire.Edit{Name: "arguments", Value: args})
}

// do returns the result of a call, and prints its response if JSON is wanted.
func (p *Printer) do(ctx context.Context, q call) ([]byte, error) {
	q.notify = p.notified
	m, err := p.Server.do(ctx, q)
	if p.AsJSON && m.Text != nil {
		if werr := output.Line(p.Out, m.Text); werr != nil {
			return nil, werr
		}
	}
	if err != nil {
		return nil, err
	}
	return m.Result, nil
}

// find returns the tool called name, or an error with the names of all tools.
func find(tools []byte, name, url string) ([]byte, error) {
	var names []string
	for tool := range wire.Elements(tools) {
		n, _ := wire.GetString(tool, "name")
		if n == name {
			return tool, nil
		}
		names = append(names, output.Escape(n))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no tools", url)
	}
	return nil, fmt.Errorf("%s has no tool %q; there are: %s", url, name, strings.Join(names, ", "))
}

// notified prints progress.
func (p *Printer) notified(m *wire.Message) error {
	if m.Method != spec.NotifyProgress {
		return nil
	}
	line := "progress " + string(wire.Get(m.Params, "progress"))
	if total := wire.Get(m.Params, "total"); total != nil {
		line += "/" + string(total)
	}
	if text, ok := wire.GetString(m.Params, "message"); ok {
		line += " " + text
	}
	_, err := output.Printf(p.Progress, "%s\n", line)
	return err
}

// answer prints a tool's result, or returns it as an error.
func (p *Printer) answer(name string, result []byte) error {
	text := contentText(result)
	switch kind, _ := wire.GetString(result, "resultType"); {
	case kind == spec.ResultInputRequired:
		return fmt.Errorf("%s asks questions, which call can't answer; use a client that can", name)
	case string(wire.Get(result, "isError")) == "true":
		return fmt.Errorf("%s failed: %s", name, text)
	}
	return p.print(text)
}
