package sessions

import "testing"

// TestTally proves that a change which a session was not told of is found, and
// one that it was told of too often.
func TestTally(t *testing.T) {
	touches := map[string][]int64{"a": {10, 20, 30}}
	for _, tt := range []struct {
		name  string
		since int64
		heard []int64
		ok    bool
	}{
		{"each once", 5, []int64{11, 21, 31}, true},
		{"one twice", 5, []int64{11, 21, 22, 31}, true},
		{"one thrice", 5, []int64{11, 21, 22, 23, 31}, false},
		{"one missed", 5, []int64{11, 31}, false},
		{"the last missed", 5, []int64{11, 21}, false},
		{"one before the subscription", 15, []int64{21, 31}, true},
		{"none", 5, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &session{subscribed: map[string]int64{"a": tt.since}, heard: map[string][]int64{"a": tt.heard}}
			if _, _, why := tally([]*session{s}, touches); (why == "") != tt.ok {
				t.Errorf("tally = %q, want ok = %v", why, tt.ok)
			}
		})
	}
	if told, _, _ := tally([]*session{{subscribed: map[string]int64{}}}, touches); len(told) != 0 {
		t.Errorf("a session without subscriptions was told %v", told)
	}
}
