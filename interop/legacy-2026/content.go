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

func text(format string, args ...any) []mcp.Content {
	return []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}
}

// addContentTools adds tools that return each kind of content, and what goes
// before a result.
func addContentTools(s *mcp.Server) {
	picture := &mcp.ImageContent{Data: dot(), MIMEType: "image/png"}
	embedded := &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://embedded-resource", MIMEType: "text/plain", Text: "embedded text"}}
	for _, t := range []struct {
		name    string
		content []mcp.Content
	}{
		{"test_simple_text", text("a simple text")},
		{"test_image_content", []mcp.Content{picture}},
		{"test_audio_content", []mcp.Content{&mcp.AudioContent{Data: silence(), MIMEType: "audio/wav"}}},
		{"test_embedded_resource", []mcp.Content{embedded}},
		{"test_multiple_content_types", append(text("text, an image and a resource"), picture, embedded)},
	} {
		addTool(s, t.name, "returns content", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) { return t.content, nil })
	}
	addTool(s, "test_error_handling", "fails", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
		return nil, errors.New("this tool always fails")
	})
	addTool(s, "test_tool_with_logging", "logs three messages", logThrice)
	addTool(s, "test_tool_with_progress", "reports progress thrice", progressThrice)
	addSchemaTool(s)
}

func logThrice(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	for i := range 3 {
		if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: fmt.Sprintf("message %d of 3", i+1)}); err != nil {
			return nil, err
		}
		time.Sleep(pause)
	}
	return text("logged"), nil
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

// addSchemaTool adds a tool whose schema has keywords of JSON Schema 2020-12.
func addSchemaTool(s *mcp.Server) {
	schema := json.RawMessage(`{
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
	}`)
	s.AddTool(&mcp.Tool{Name: "json_schema_2020_12_tool", Description: "returns its arguments", InputSchema: schema},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: text("%s", r.Params.Arguments)}, nil
		})
}

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
