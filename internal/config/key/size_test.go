package key

import "testing"

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "65536": 65536, "64KiB": 65536, "64 KiB": 65536, "1GiB": 1 << 30, "5 kB": 5000, "7B": 7} {
		if got, ok := ParseSize(text); !ok || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "KiB", "-1", "1.5MiB", "9999999999999GiB", "4 mib"} {
		if got, ok := ParseSize(text); ok {
			t.Errorf("ParseSize(%q) = %d, want none", text, got)
		}
	}
	for n, want := range map[int64]string{0: "0", 1000: "1000", 65536: "64KiB", 1 << 30: "1GiB", 3 << 19: "1536KiB"} {
		if got := SizeText(n); got != want {
			t.Errorf("SizeText(%d) = %q, want %q", n, got, want)
		}
	}
}
