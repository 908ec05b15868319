package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func newReadCommand(p process) *cobra.Command {
	a := &asking{target: target{process: p}}
	cmd := &cobra.Command{
		Use:   "read URL URI | NAME URI -c FILE\n  mcpbridge read URI -- COMMAND ARGS...",
		Short: "Read a resource",
		Long: `Reads a resource and prints its text; of contents that are no text it says what
they are. The server is named as for call, and may be of any revision.

Exit codes: 0 it was read; 1 it could not be.`,
		Example: `  mcpbridge read http://127.0.0.1:2526/mcp/notebook note://todo
  mcpbridge read -c config.yaml notebook note://todo --json`,
		RunE: a.command(1, "want the URI of a resource", func(ctx context.Context, t *caller, words []string) error {
			if len(words) > 1 {
				return usageError("%q is too much; read takes one URI", words[1])
			}
			return t.read(ctx, words[0])
		}),
		ValidArgsFunction: a.complete(spec.MethodResourcesList, "uri"),
	}
	a.addFlags(cmd, "print the JSON-RPC response as it came")
	return cmd
}

func newPromptCommand(p process) *cobra.Command {
	a := &asking{target: target{process: p}}
	cmd := &cobra.Command{
		Use:   "prompt URL PROMPT [key=value]... | NAME PROMPT -c FILE\n  mcpbridge prompt PROMPT [key=value]... -- COMMAND ARGS...",
		Short: "Get a prompt",
		Long: `Gets a prompt and prints its messages, each with who is to say it. The server is
named as for call, and may be of any revision.

Exit codes: 0 the server gave it; 1 it did not.`,
		Example: `  mcpbridge prompt http://127.0.0.1:2526/mcp/notebook summarize name=todo
  mcpbridge prompt -c config.yaml notebook summarize name=todo --json`,
		RunE: a.command(1, "want the name of a prompt", func(ctx context.Context, t *caller, words []string) error {
			return t.prompt(ctx, words[0], words[1:])
		}),
		ValidArgsFunction: a.complete(spec.MethodPromptsList, "name"),
	}
	a.addFlags(cmd, "print the JSON-RPC response as it came")
	return cmd
}

// read prints a resource.
func (t *caller) read(ctx context.Context, uri string) error {
	params := wire.AppendEdited(nil, nil, wire.Edit{Name: "uri", Value: wire.Quote(uri)})
	result, err := t.answered(ctx, call{method: spec.MethodResourcesRead, name: uri, params: params})
	if err != nil {
		return fmt.Errorf("reading %s of %s: %w", uri, t.name, err)
	}
	for part := range wire.Elements(wire.Get(result, "contents")) {
		text, ok := wire.GetString(part, "text")
		if !ok {
			typ, _ := wire.GetString(part, "mimeType")
			blob, _ := wire.GetString(part, "blob")
			text = fmt.Sprintf("[%s, %d bytes of base64]", typ, len(blob))
		}
		if err := t.print(text); err != nil {
			return err
		}
	}
	return nil
}

// prompt prints the messages of a prompt.
func (t *caller) prompt(ctx context.Context, name string, words []string) error {
	args, err := promptArguments(name, words)
	if err != nil {
		return err
	}
	result, err := t.answered(ctx, call{method: spec.MethodPromptsGet, name: name, params: withArguments(name, args)})
	if err != nil {
		return fmt.Errorf("getting %s of %s: %w", name, t.name, err)
	}
	for m := range wire.Elements(wire.Get(result, "messages")) {
		role, _ := wire.GetString(m, "role")
		if err := t.print(role + ": " + blockText(wire.Get(m, "content"))); err != nil {
			return err
		}
	}
	return nil
}

// answered is do for a call that must not ask questions.
func (t *caller) answered(ctx context.Context, q call) ([]byte, error) {
	q.id = t.nextID()
	result, err := t.do(ctx, q)
	if kind, _ := wire.GetString(result, "resultType"); err == nil && kind == spec.ResultInputRequired {
		err = errors.New("it asks questions, which can't be answered here; use a client that can")
	}
	return result, err
}

// print writes text, unless JSON is wanted.
func (t *caller) print(text string) error {
	if t.asJSON {
		return nil
	}
	_, err := fmt.Fprintln(t.out, printable(text))
	return err
}

// promptArguments makes the arguments of a prompt, which are texts, of key=value words.
func promptArguments(name string, words []string) ([]byte, error) {
	for _, word := range words {
		if key, _, _ := strings.Cut(word, "="); strings.HasSuffix(key, ":") {
			return nil, usageError("%s: %q gives JSON, and a prompt takes texts; write key=value", name, word)
		}
	}
	return readArguments(name, nil, words)
}
