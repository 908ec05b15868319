package layer

import "testing"

// The line that is indented wrongly is named, and not the one where its level begins.
func TestMisindented(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       int
	}{
		{"right", "servers:\n  a:\n    command: cat\n    args:\n    - x\n    - y\n  b:\n    env:\n      A: b\n", 0},
		{"a key too far left", "servers:\n  a:\n    command: cat\n   args: [x]\n", 4},
		{"a server too far left", "servers:\n  a:\n    command: cat\n b:\n    command: x\n", 4},
		{"an item too far left", "servers:\n  a:\n    args:\n    - x\n   - y\n", 5},
		{"keys in an item", "servers:\n  a:\n    rules:\n    - allow: x\n      deny: y\n     more: z\n", 6},
		{"a text in a block", "servers:\n  a:\n    describe: |\n        one\n      two\n    command: x\n   args: [x]\n", 7},
		{"comments", "servers:\n  a:\n    command: x\n # no\n\n    args: [x]\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := misindented([]byte(tt.text)); got != tt.want {
				t.Errorf("it is line %d, want %d", got, tt.want)
			}
		})
	}
}
