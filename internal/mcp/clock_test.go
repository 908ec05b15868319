package mcp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

func TestClock(t *testing.T) {
	for _, tt := range []struct {
		name string
		play func(k *Clock)
		want time.Duration // after the start; zero: never
	}{
		{"nothing happens", func(*Clock) {}, time.Minute},
		{"activity", func(k *Clock) { time.Sleep(50 * time.Second); k.Restart() }, 110 * time.Second},
		{"continuous activity", func(k *Clock) {
			for range 9 {
				time.Sleep(30 * time.Second)
				k.Restart()
			}
		}, 5 * time.Minute},
		{"a pause", func(k *Clock) { k.Pause(); k.Pause(); time.Sleep(time.Hour); k.Resume() }, time.Hour + time.Minute},
		{"a pause does not count for the maximum", func(k *Clock) {
			k.Pause()
			time.Sleep(time.Hour)
			k.Resume()
			for range 9 {
				time.Sleep(30 * time.Second)
				k.Restart()
			}
		}, time.Hour + 5*time.Minute},
		{"stopped", func(k *Clock) { k.Stop(); k.Restart() }, 0},
		{"stopped in a pause", func(k *Clock) { k.Pause(); k.Stop(); k.Resume() }, 0},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			start := time.Now()
			var rang time.Duration
			var k Clock
			k.Start(time.Minute, 5*time.Minute, func() { rang = time.Since(start) })
			tt.play(&k)
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			if rang != tt.want {
				t.Errorf("expired after %v, want %v", rang, tt.want)
			}
		})
	}
}

// Without a time of its own only the maximum ends it, whatever happens.
func TestClockOfSilence(t *testing.T) {
	for name, play := range map[string]func(k *Clock){
		"nothing":  func(*Clock) {},
		"progress": func(k *Clock) { time.Sleep(time.Minute); k.Advance([]byte("1")) },
		"a pause":  func(k *Clock) { k.Pause(); k.Resume() },
	} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			start := time.Now()
			var rang time.Duration
			var k Clock
			k.Start(0, time.Hour, func() { rang = time.Since(start) })
			play(&k)
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if rang != time.Hour {
				t.Errorf("expired after %v, want 1h", rang)
			}
		})
	}
}
