package tasks

import (
	"testing"
	"time"
)

func TestM2L07PauseIsBounded(t *testing.T) {
	for in, want := range map[string]time.Duration{
		`{}`: time.Second, `{"pollInterval":1}`: 50 * time.Millisecond, `{"pollInterval":2500}`: 2500 * time.Millisecond,
		`{"pollInterval":1e99}`: 15 * time.Second, `{"pollInterval":-1}`: 50 * time.Millisecond, `{"pollInterval":"x"}`: time.Second,
	} {
		if got := readState([]byte(in)).pause; got != want {
			t.Errorf("pause of %s = %v, want %v", in, got, want)
		}
	}
}
