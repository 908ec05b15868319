package limits

import (
	"reflect"
	"regexp"
	"testing"
)

// Each limit has a unique key, a description, and a default within its range.
func TestLimits(t *testing.T) {
	seen := make(map[string]bool)
	for _, l := range All() {
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(l.Key) || l.Doc == "" || seen[l.Key] {
			t.Errorf("%+v has no unique key, or no description", l)
		}
		if l.Min < 0 || l.Default < l.Min || l.Max < l.Default {
			t.Errorf("%s: the default %d is not from %d to %d", l.Key, l.Default, l.Min, l.Max)
		}
		seen[l.Key] = true
	}
	if want := "raise limits.body"; Body.Raise() != want {
		t.Errorf("Raise() = %q, want %q", Body.Raise(), want)
	}
}

// The limit for one client is at most the limit for all clients.
func TestShares(t *testing.T) {
	all := make(map[string]*Limit)
	for _, l := range All() {
		all[l.Key] = l
	}
	for key, each := range all {
		if of := all[regexp.MustCompile(`_each$`).ReplaceAllString(key, "")]; of != nil && of != each {
			if each.Default > of.Default || !reflect.DeepEqual([]int64{each.Min, each.Max}, []int64{of.Min, of.Max}) {
				t.Errorf("%+v is not part of %+v", each, of)
			}
		}
	}
}

func TestSet(t *testing.T) {
	s := Set{"body": 5, "depth": 0}
	if s.Of(Body) != 5 || s.Int(Depth) != int(Depth.Default) || s.Of(Requests) != Requests.Default || Set(nil).Of(Body) != Body.Default {
		t.Errorf("body %d, depth %d, requests %d; want 5 and defaults", s.Of(Body), s.Int(Depth), s.Of(Requests))
	}
}
