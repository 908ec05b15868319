package interop

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestM2L23RootsOfFilesystem proves that server-filesystem works on the roots
// of the client, for which it asks before the client's first call: the folder
// that it was started with is closed.
func TestM2L23RootsOfFilesystem(t *testing.T) {
	for client, run := range runners {
		t.Run(client, func(t *testing.T) {
			b, root := errandBridge(t, client)
			dir := strings.TrimPrefix(root.URI, "file://")
			calls := []errandCall{
				{Tool: "list_allowed_directories", want: []string{"Allowed directories:", dir}},
				{Tool: "read_text_file", Arguments: map[string]any{"path": dir + "/mine.txt"}, want: []string{"the client's own"}},
			}
			outside := errandCall{Tool: "read_text_file", Arguments: map[string]any{"path": filepath.Join(b.dir, "notes.txt")}}
			got := run(t, errand{URL: b.endpoint("files"), Revision: revision, Root: root, Calls: append(slices.Clone(calls), outside)})
			if n := len(calls); len(got) == n+1 {
				if last := got[n]; !last.IsError || !strings.Contains(last.Text, "Access denied") {
					t.Errorf("reading outside the client's roots gave %q, error %v, want access denied", last.Text, last.IsError)
				}
				got = got[:n]
			}
			compare(t, calls, got)
			if text := got[0].Text; text != "Allowed directories:\n"+dir {
				t.Errorf("allowed is %q, want only %s", text, dir)
			}
		})
	}
}
