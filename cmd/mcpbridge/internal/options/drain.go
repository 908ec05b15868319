package options

import "time"

// Closing is the part of the drain that is kept for ending servers.
func Closing(drain time.Duration) time.Duration { return min(drain/2, 6*time.Second) }

// CloseGrace is how long a command may take over each of the two polite steps
// of its end, so that both fit into Closing: 2 s each by default.
func CloseGrace(drain time.Duration) time.Duration {
	return max(Closing(drain)*2/5, 10*time.Millisecond)
}

// OneClient divides the drain of a program that ends with its only client: calls in flight
// are waited for; a command gets SIGTERM at closeGrace from the end of the input, and SIGKILL
// at the end of the drain (see [gateway.Gateway.ServeStdio]).
func OneClient(drain time.Duration) (calls, closeGrace time.Duration) {
	return drain * 3 / 7, max(drain*4/7, 10*time.Millisecond)
}
