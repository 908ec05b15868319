package limits

import (
	"reflect"
	"regexp"
	"testing"
)

// A limit says what it bounds, its default is one that people may set, and no other has
// its key.
func TestLimits(t *testing.T) {
	seen := make(map[string]bool)
	for _, l := range All() {
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(l.Key) || l.Doc == "" || seen[l.Key] {
			t.Errorf("%+v has no key of its own, or does not say what it bounds", l)
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

// What is for one client is part of what is for all of them.
func TestShares(t *testing.T) {
	all := make(map[string]*Limit)
	for _, l := range All() {
		all[l.Key] = l
	}
	for key, each := range all {
		if of := all[regexp.MustCompile(`_each$`).ReplaceAllString(key, "")]; of != nil && of != each {
			if each.Default > of.Default || !reflect.DeepEqual([]int64{each.Min, each.Max}, []int64{of.Min, of.Max}) {
				t.Errorf("%+v is no part of %+v", each, of)
			}
		}
	}
}
