package output

import "testing"

// A server must not be able to drive the terminal of whoever looks at it.
func TestPrintableTakesTerminalControl(t *testing.T) {
	in := "ok\tné\n\x1b]0;owned\x07\x1b[2K\r\u202e\u200bend"
	if got, want := Printable(in), "ok\tné\n\ufffd]0;owned\ufffd\ufffd[2K\ufffd\ufffd\ufffdend"; got != want {
		t.Errorf("Printable(%q) = %q, want %q", in, got, want)
	}
}
