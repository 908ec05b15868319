package bridgetest

import "os"

// Numbers returns how many of something a test takes: few, or many with NUMBERS=full, as in
// `make soak`.
func Numbers(few, many int) int {
	if os.Getenv("NUMBERS") == "full" {
		return many
	}
	return few
}
