package key

import (
	"math"
	"strconv"
	"strings"
)

var units = []struct {
	name   string
	factor int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}, {"", 1}}

// ParseSize reads a size: a whole number, alone or with a unit.
func ParseSize(s string) (int64, bool) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		return n * u.factor, err == nil && n >= 0 && n <= math.MaxInt64/u.factor
	}
	return 0, false
}

// SizeText formats n bytes with the largest unit that is exact.
func SizeText(n int64) string {
	for _, u := range units[:3] {
		if n > 0 && n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
