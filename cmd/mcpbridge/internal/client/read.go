package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Read prints a resource.
func (p *Printer) Read(ctx context.Context, uri string) error {
	params := wire.AppendEdited(nil, nil, wire.Edit{Name: "uri", Value: wire.Quote(uri)})
	result, err := p.answered(ctx, call{method: spec.MethodResourcesRead, name: uri, params: params})
	if err != nil {
		return p.refused("reading", uri, err)
	}
	for part := range wire.Elements(wire.Get(result, "contents")) {
		text, ok := wire.GetString(part, "text")
		if !ok {
			typ, _ := wire.GetString(part, "mimeType")
			blob, _ := wire.GetString(part, "blob")
			text = fmt.Sprintf("[%s, %d bytes of base64]", typ, len(blob))
		}
		if err := p.print(text); err != nil {
			return err
		}
	}
	return nil
}

// Prompt prints the messages of a prompt. The words are its arguments, key=value.
func (p *Printer) Prompt(ctx context.Context, name string, words []string) error {
	args, err := promptArguments(name, words)
	if err != nil {
		return err
	}
	result, err := p.answered(ctx, call{method: spec.MethodPromptsGet, name: name, params: withArguments(name, args)})
	if err != nil {
		return p.refused("getting", name, err)
	}
	for m := range wire.Elements(wire.Get(result, "messages")) {
		role, _ := wire.GetString(m, "role")
		if err := p.print(role + ": " + blockText(wire.Get(m, "content"))); err != nil {
			return err
		}
	}
	return nil
}

// refused is the error of what was not given; where the server may not have it, with what to do.
func (p *Printer) refused(doing, name string, err error) error {
	var of *wire.Error
	err = fmt.Errorf("%s %s of %s: %w", doing, name, p.Name, err)
	if errors.As(err, &of) && (of.Code == spec.CodeInvalidParams || of.Code == spec.CodeResourceNotFound) {
		err = fmt.Errorf("%w; mcpbridge ls shows what it has", err)
	}
	return err
}

// AsConfigured adds to an error that a server of a configuration may be of another kind than that
// says, as its words repeat it. Empty words say nothing.
func AsConfigured(err error, words string) error {
	var of *wire.Error
	if words == "" || !errors.As(err, &of) || of.Code != spec.CodeMethodNotFound && of.Code != spec.CodeInternal {
		return err
	}
	return fmt.Errorf("%w; the configuration says %s: is that so? Without it, it is found out", err, words)
}

// answered is do for a call that must not end in an input request.
func (p *Printer) answered(ctx context.Context, q call) ([]byte, error) {
	q.id = p.nextID()
	result, err := p.do(ctx, q)
	if kind, _ := wire.GetString(result, "resultType"); err == nil && kind == spec.ResultInputRequired {
		err = errors.New("it asks questions, which can't be answered here; use a client that can")
	}
	return result, err
}

// print writes text, unless JSON is wanted.
func (p *Printer) print(text string) error {
	if p.AsJSON {
		return nil
	}
	return output.Line(p.Out, text)
}

// promptArguments converts key=value words to the arguments of a prompt, which are strings.
func promptArguments(name string, words []string) ([]byte, error) {
	for _, word := range words {
		if key, _, _ := strings.Cut(word, "="); strings.HasSuffix(key, ":") {
			return nil, wrongWords("%s: %q gives JSON, and a prompt takes texts; write key=value", name, word)
		}
	}
	return readArguments(name, nil, words)
}
