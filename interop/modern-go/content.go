//lint:file-ignore SA1019 What is deprecated in 2026-07-28 is part of it all the same.

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pause lies between two messages of a tool, so that they can be told from a
// burst at its end.
const pause = 20 * time.Millisecond

type noArgs struct{}

// A simpleTool takes no arguments and returns content.
type simpleTool func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error)

func addTool(s *mcp.Server, name, description string, run simpleTool) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, r *mcp.CallToolRequest, _ noArgs) (*mcp.CallToolResult, any, error) {
			content, err := run(ctx, r)
			return &mcp.CallToolResult{Content: content}, nil, err
		})
}

// addConstant adds a tool that returns the same content always.
func addConstant(s *mcp.Server, name string, content ...mcp.Content) {
	addTool(s, name, "returns content", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) { return content, nil })
}

func text(format string, args ...any) []mcp.Content {
	return []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}
}

func picture() mcp.Content { return &mcp.ImageContent{Data: dot(), MIMEType: "image/png"} }

func sound() mcp.Content { return &mcp.AudioContent{Data: silence(), MIMEType: "audio/wav"} }

func embedded(uri string) mcp.Content {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "embedded text"}}
}

// addContentTools adds tools that return each kind of content, and what goes
// before a result.
func addContentTools(s *mcp.Server) {
	const uri = "test://embedded-resource"
	addConstant(s, "test_simple_text", text("a simple text")...)
	addConstant(s, "test_image_content", picture())
	addConstant(s, "test_audio_content", sound())
	addConstant(s, "test_embedded_resource", embedded(uri))
	addConstant(s, "test_multiple_content_types", append(text("text, an image and a resource"), picture(), embedded(uri))...)
	addTool(s, "test_error_handling", "fails", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
		return nil, errors.New("this tool always fails")
	})
	addTool(s, "test_tool_with_logging", "logs three messages", logThrice)
	addTool(s, "test_tool_with_progress", "reports progress thrice", progressThrice)
	addTool(s, "test_reconnection", "takes longer than a client waits for the first byte", takeLong)
	addTool(s, "test_all_levels", "logs a message of each level", logAll)
}

func logThrice(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	for i := range 3 {
		if err := logAt(ctx, r, "info", fmt.Sprintf("message %d of 3", i+1)); err != nil {
			return nil, err
		}
	}
	return text("logged"), nil
}

// takeLong lasts long enough for a bridge to begin a stream that can be taken up
// again; what a server of the legacy era does then, end it, is not ours to do.
func takeLong(ctx context.Context, _ *mcp.CallToolRequest) ([]mcp.Content, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(1500 * time.Millisecond):
		return text("it took long"), nil
	}
}

func logAll(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	for _, level := range []mcp.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"} {
		if err := logAt(ctx, r, level, "at "+string(level)); err != nil {
			return nil, err
		}
	}
	return text("logged"), nil
}

// logAt logs if the request asked for the level: the SDK looks.
func logAt(ctx context.Context, r *mcp.CallToolRequest, level mcp.LoggingLevel, message string) error {
	defer time.Sleep(pause)
	return r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "modern-go", Data: message})
}

func progressThrice(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return text("nobody asked for progress"), nil
	}
	for _, done := range []float64{0, 50, 100} {
		p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100, Message: fmt.Sprintf("%v of 100", done)}
		if err := r.Session.NotifyProgress(ctx, p); err != nil {
			return nil, err
		}
		time.Sleep(pause)
	}
	return text("reported"), nil
}

// addOddTools adds tools whose schemas or results older revisions don't have.
func addOddTools(s *mcp.Server) {
	addConstant(s, "links", &mcp.ResourceLink{URI: "res://item/000", Name: "item 000", MIMEType: "text/plain"}, sound())
	for _, t := range []struct{ name, input, output, result string }{
		{name: "json_schema_2020_12_tool", input: schema2020},
		{name: "test_x_mcp_header", input: headerSchema},
		{name: "array_output", output: `{"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}`, result: `[1, 2, 9007199254740993]`},
		{name: "string_output", output: `{"type": "string"}`, result: `"just a string"`},
		{name: "either_output", output: `{"anyOf": [{"type": "object", "properties": {"n": true}}, {"type": "null"}]}`, result: `{"n": 1}`},
		{name: "no_schema_output", result: `[true, null]`},
		{name: "object_output", output: `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`, result: `{"n": 1}`},
	} {
		addRaw(s, t.name, t.input, t.output, t.result)
	}
}

// addRaw adds a tool with schemas as they stand here; it returns its arguments
// as text or, if there is one, result as structured content without any text.
func addRaw(s *mcp.Server, name, input, output, result string) {
	t := &mcp.Tool{Name: name, Description: "has schemas of its own", InputSchema: json.RawMessage(`{"type": "object"}`)}
	if input != "" {
		t.InputSchema = json.RawMessage(input)
	}
	if output != "" {
		t.OutputSchema = json.RawMessage(output)
	}
	s.AddTool(t, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if result != "" {
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(result)}, nil
		}
		return &mcp.CallToolResult{Content: text("%s", r.Params.Arguments)}, nil
	})
}

// schema2020 has keywords of JSON Schema 2020-12.
const schema2020 = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "home", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"by": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"by": {"const": "phone"}}, "required": ["by"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

// headerSchema has arguments of each type that must come in a header too.
const headerSchema = `{
	"type": "object",
	"properties": {
		"region": {"type": "string", "x-mcp-header": "Region"},
		"count": {"type": "integer", "x-mcp-header": "Count"},
		"urgent": {"type": "boolean", "x-mcp-header": "Urgent"},
		"level": {"type": "integer"}
	}
}`

// dot is a PNG of one red pixel.
func dot() []byte {
	m := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	m.Set(0, 0, color.NRGBA{R: 255, A: 255})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// silence is a WAV of one sample, 8 bit mono at 8 kHz.
func silence() []byte {
	data := []byte{128, 0} // the sample, and a pad to an even length
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, uint32(36+len(data)))...)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	for _, v := range []uint16{1, 1} { // PCM, one channel
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, 8000)
	b = binary.LittleEndian.AppendUint32(b, 8000)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint16(b, 8)
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, 1)
	return append(b, data...)
}
