package login

import (
	"bufio"
	"context"
	"io"
)

// Lines returns the lines of a terminal until ctx ends, for [Flow.Paste]. What reads the terminal
// stays until that says something, or the process ends.
func Lines(ctx context.Context, from io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		for s := bufio.NewScanner(from); s.Scan(); {
			select {
			case out <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
