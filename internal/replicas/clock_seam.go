//go:build clockseam

package replicas

import (
	"os"
	"time"
)

// ahead is by how much the clock of this process is ahead of that of the machine: a test runs
// replicas whose clocks differ.
var ahead = func() time.Duration {
	text := os.Getenv("CLOCKSEAM")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic("CLOCKSEAM: " + err.Error())
	}
	return d
}()

// Now is the clock by which replicas judge what others send.
func Now() time.Time { return time.Now().Add(ahead) }
