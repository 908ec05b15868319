package key

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// Read converts s to a value of k. problem is the error, in which quoted stands for s.
func (k *Key) Read(s, quoted string) (v any, problem string) {
	switch k.Kind {
	case Flag:
		return readFlag(s, quoted)
	case Count:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, quoted + " is not a whole number"
		}
		return n, k.within(n, quoted, func(n int64) string { return strconv.FormatInt(n, 10) })
	case Decimal:
		return k.readDecimal(s, quoted)
	case Size:
		n, ok := ParseSize(s)
		if !ok {
			return nil, quoted + " is not a size; write one such as 65536, 64KiB or 4MiB"
		}
		return n, k.within(n, quoted, SizeText)
	case Span:
		return k.readSpan(s, quoted)
	}
	return k.readText(s, quoted)
}

func readFlag(s, quoted string) (any, string) {
	switch strings.ToLower(s) {
	case "true":
		return true, ""
	case "false":
		return false, ""
	}
	return nil, quoted + " is neither true nor false; write one of them"
}

func (k *Key) readText(s, quoted string) (any, string) {
	if len(k.OneOf) == 0 || slices.Contains(k.OneOf, s) {
		return s, ""
	}
	return nil, fmt.Sprintf("%s is unknown; write %s", quoted, Either(k.OneOf))
}

var bareNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

// readSpan requires a unit: `drain: 10` could be understood as nanoseconds or as seconds.
func (k *Key) readSpan(s, quoted string) (any, string) {
	d, err := time.ParseDuration(s)
	if err != nil && bareNumber.MatchString(s) {
		return nil, quoted + " has no unit; write one such as 300ms, 10s or 5m"
	}
	if err != nil {
		return nil, quoted + " is not a duration; write one such as 300ms, 10s or 5m"
	}
	return d, k.within(int64(d), quoted, func(n int64) string { return hostfile.DurationText(time.Duration(n)) })
}

func (k *Key) readDecimal(s, quoted string) (any, string) {
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0:
		return nil, quoted + " is not a number; write one such as 10 or 0.5"
	case k.Max > 0 && f > float64(k.Max):
		return nil, fmt.Sprintf("%s is too large; write at most %d", quoted, k.Max)
	}
	return f, ""
}

func (k *Key) within(n int64, quoted string, show func(int64) string) string {
	switch {
	case n < k.Min:
		return fmt.Sprintf("%s is too small; write at least %s", quoted, show(k.Min))
	case k.Max > 0 && n > k.Max:
		return fmt.Sprintf("%s is too large; write at most %s", quoted, show(k.Max))
	}
	return ""
}
