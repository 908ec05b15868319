package tap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Revisions are those of the legacy era, oldest first.
var Revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// Schemas are the schemas of the legacy revisions. Safe for concurrent use.
type Schemas struct {
	of map[string]*schema // by revision; read-only
}

// Folder is where the schemas lie, as the environment has it. A test that needs
// them fails without.
func Folder() (string, error) {
	dir := os.Getenv("MCP_SCHEMAS")
	if dir == "" {
		return "", errors.New("MCP_SCHEMAS does not name the folder of the published schemas")
	}
	return dir, nil
}

// LoadSchemas reads REVISION.json of each of [Revisions] from a folder.
func LoadSchemas(dir string) (*Schemas, error) {
	s := &Schemas{of: make(map[string]*schema)}
	for _, r := range Revisions {
		var err error
		if s.of[r], err = loadSchema(filepath.Join(dir, r+".json")); err != nil {
			return nil, fmt.Errorf("loading the schema of %s: %w", r, err)
		}
	}
	return s, nil
}

// A schema is that of one revision.
type schema struct {
	// Set by loadSchema, read-only after.
	prefix string            // of a definition's URL
	has    map[string]bool   // the names of the definitions
	named  map[string]string // that of a request or notification, by method

	// mu guards the fields below.
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by name
}

func loadSchema(file string) (*schema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	s := &schema{compiler: jsonschema.NewCompiler(), compiled: make(map[string]*jsonschema.Schema)}
	url := filepath.Base(file)
	if err := s.compiler.AddResource(url, doc); err != nil {
		return nil, err
	}
	return s, s.index(url, text)
}

// index finds the definitions, and which of them a method has. The folder of the
// definitions is called definitions at first and $defs later.
func (s *schema) index(url string, text []byte) error {
	type definition struct {
		Properties struct {
			Method struct{ Const string }
		}
	}
	var doc struct {
		Definitions map[string]definition
		Defs        map[string]definition `json:"$defs"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	s.prefix = url + "#/$defs/"
	if doc.Defs == nil {
		s.prefix, doc.Defs = url+"#/definitions/", doc.Definitions
	}
	s.has, s.named = make(map[string]bool), make(map[string]string)
	for name, d := range doc.Defs {
		s.has[name] = true
		if m := d.Properties.Method.Const; m != "" {
			s.named[m] = name
		}
	}
	if s.named["initialize"] == "" {
		return fmt.Errorf("%s defines no initialize", url)
	}
	return nil
}

// resultOf names the definition of the result of a method.
func (s *schema) resultOf(method string) string {
	if name := strings.TrimSuffix(s.named[method], "Request") + "Result"; s.has[name] {
		return name
	}
	return "EmptyResult"
}

// either returns the first of the names that the revision has.
func (s *schema) either(names ...string) string {
	for _, name := range names {
		if s.has[name] {
			return name
		}
	}
	return names[0]
}

// check holds JSON against a definition and says what is wrong with it.
func (s *schema) check(name string, text []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	sch, err := s.compile(name)
	if err != nil {
		return err
	}
	if err := sch.Validate(v); err != nil {
		return fmt.Errorf("is no %s: %w", name, err)
	}
	return nil
}

func (s *schema) compile(name string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sch := s.compiled[name]; sch != nil {
		return sch, nil
	}
	sch, err := s.compiler.Compile(s.prefix + name)
	if err != nil {
		return nil, err
	}
	s.compiled[name] = sch
	return sch, nil
}
