package key_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

const (
	schemaFile  = "../../../config.schema.json"
	exampleFile = "../../../config.example.yaml"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check validates YAML as an editor does.
func check(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// The file of the repository is what is made of the keys.
func TestFile(t *testing.T) {
	got, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(got, config.JSONSchema()) {
		t.Errorf("%s is not what mcpbridge schema prints (%v); run: go run ./cmd/mcpbridge schema > config.schema.json", schemaFile, err)
	}
}

// The example is valid as it is, and with every key set.
func TestExample(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if want := "# yaml-language-server: $schema=config.schema.json"; first != want {
		t.Errorf("the first line of the example is %q, want %q", first, want)
	}
	if err := check(t, compiled(t), string(text)); err != nil {
		t.Error(err)
	}
}

// What people write is accepted, and mistakes are found.
func TestValues(t *testing.T) {
	s := compiled(t)
	for _, good := range []string{
		"listen: 127.0.0.1:2526", "include: conf.d/*.yaml", "include: [a.yaml, b.yaml]", "debug_errors: ${DEBUG:-false}", "drain: 1m30s", "drain: ${DRAIN}", "limits: {body: 4MiB, depth: 64, requests: '${N}'}",
		"servers: {a: {command: npx, args: [-y, x, 7], env: {PORT: 8080}, synthesize: {tools: 10s}}}", "mcpServers: {a: {url: 'https://docs.example.com/mcp', headers: {A: b}}}",
		"auth: none", "auth: {tokens: [{name: ada, token: x}]}", "servers: {a: {builtin: notebook, cache: {tools/list: {ttl: 5m, scope: public}}}}",
	} {
		if err := check(t, s, good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"listem: 127.0.0.1:2526", "debug_errors: perhaps", "drain: 10", "drain: soon", "limits: {body: lots}", "limits: {depth: 0}", "log: {level: loud}", "include: {a: b}", "include: [[a]]",
		"servers: {a: {biltin: notebook}}", "servers: [a]", "auth: everybody", "allowed_hosts: one.example", "servers: {a: {builtin: notebook, cache: {tools/cal: {ttl: 5m}}}}",
	} {
		if err := check(t, s, bad); err == nil {
			t.Errorf("%s is valid", bad)
		}
	}
}
