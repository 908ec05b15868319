package system

import (
	"slices"
	"strings"
)

// ballastSize is how many bytes of garbage a process with little live data may gather
// before they are collected. A gateway that holds a few megabytes would otherwise collect
// hundreds of times a second, and empty its pools of buffers each time.
const ballastSize = 18 << 20

// Ballast returns memory that is never touched, so that it takes no room: the collector,
// which lets garbage grow with what is live, counts it as long as it is referred to. It is
// at most an eighth of memory, what the process aims at, and nil where the user tunes the
// collector. A percentage (GOGC) would cost a gateway of many streams as much as it gives
// a small one.
func Ballast(memory int64, environ []string) []byte {
	tuned := func(entry string) bool {
		return strings.HasPrefix(entry, "GOGC=") || strings.HasPrefix(entry, "GOMEMLIMIT=")
	}
	if slices.ContainsFunc(environ, tuned) {
		return nil
	}
	return make([]byte, min(ballastSize, memory/8))
}
