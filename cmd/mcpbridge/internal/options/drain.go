package options

import "time"

// Closing is the part of the drain that is kept for ending servers.
func Closing(drain time.Duration) time.Duration { return min(drain/2, 6*time.Second) }

// CloseGrace is how long a command may take over each of the two polite steps
// of its end, so that both fit into Closing.
func CloseGrace(drain time.Duration) time.Duration {
	return max(Closing(drain)/3, 10*time.Millisecond)
}
