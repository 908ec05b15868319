package spec

import "testing"

// A method that is not in the table has zero properties.
func TestMethodsNotDefined(t *testing.T) {
	for _, method := range []string{"", "tools", "events/stream", "Tools/Call", "notifications/cancelled"} {
		if Defined(method) || OnTask(method) || LegacyOnly(method) || Repeatable(method) || Named(method) != "" {
			t.Errorf("%q is defined", method)
		}
	}
}

func TestMethodsAgree(t *testing.T) {
	for name, m := range methods {
		switch {
		case (m.extension != "") == Defined(name):
			t.Errorf("%s: Defined = %v", name, Defined(name))
		case m.mayAsk && m.array == "":
			t.Errorf("%s may ask, but its results have no array", name)
		case m.legacyOnly && (m.cacheable || m.named != ""):
			t.Errorf("%s is legacy, but has properties of modern methods", name)
		case m.cacheable && !m.repeatable:
			t.Errorf("%s may be cached, but not repeated", name)
		}
	}
}
