package tasks

import (
	"testing"
	"time"
)

func TestM2L07PollIntervals(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{}`:                      defaultPoll,
		`{"pollInterval":1500}`:   1500 * time.Millisecond,
		`{"pollInterval":0}`:      minPoll,
		`{"pollInterval":-7}`:     minPoll,
		`{"pollInterval":1e300}`:  maxPoll,
		`{"pollInterval":"soon"}`: defaultPoll,
	} {
		if got := readState([]byte(text)).poll; got != want {
			t.Errorf("readState(%s).poll = %v, want %v", text, got, want)
		}
	}
}
