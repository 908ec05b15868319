package bridgetest

import (
	"os"
	"strings"
	"testing"
)

// Forms are texts that programs of several versions exchange, as the file testdata/forms has
// them: a line each, of a name, a space and the text. What one version has written there, the
// next ones must read, so that a line is never changed: lines are added.
type Forms struct {
	t    *testing.T
	text map[string]string
	used map[string]bool
}

// ReadForms reads testdata/forms. Each of its lines has to be used by the end of the test.
func ReadForms(t *testing.T) *Forms {
	t.Helper()
	file, err := os.ReadFile("testdata/forms")
	if err != nil {
		t.Fatal(err)
	}
	f := &Forms{t, make(map[string]string), make(map[string]bool)}
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSuffix(line, "\n")
		if name, text, ok := strings.Cut(line, " "); ok && name != "#" {
			f.text[name] = text
		}
	}
	t.Cleanup(f.wantUsed)
	return f
}

// Text returns the text of a name.
func (f *Forms) Text(name string) string {
	f.t.Helper()
	text, ok := f.text[name]
	if !ok {
		f.t.Fatalf("testdata/forms has no line %q", name)
	}
	f.used[name] = true
	return text
}

// Want wants what is written to be the text of a name.
func (f *Forms) Want(name, got string) {
	f.t.Helper()
	if want := f.Text(name); got != want {
		f.t.Errorf("%s is written as\n%s\nwhich other versions know as\n%s", name, got, want)
	}
}

func (f *Forms) wantUsed() {
	for name := range f.text {
		if !f.used[name] && !f.t.Failed() {
			f.t.Errorf("testdata/forms: the line %q is not used", name)
		}
	}
}
