package rules

import "regexp"

// An id in a test's name: TestM2L34TwoStreams, TestF01F02, "F-07 ...", "M2L-22_...". It
// does not follow an upper-case letter or a digit (SHA-25 does not contain A-25), unless
// that digit is the end of another id.
var (
	idInName = regexp.MustCompile(`(M2L|L2M|F|Q|S|U|A|T|G)[-_]?(\d{2})`)
	before   = regexp.MustCompile(`[A-Z0-9]$`)
	after    = regexp.MustCompile(`^\d`)
)

// IDs returns the ids of rules in a test's name, in the form of the list ("M2L-34") and
// in order, even if there is no such rule.
func IDs(name string) []string {
	var ids []string
	end := 0 // where the last id ended
	for _, m := range idInName.FindAllStringSubmatchIndex(name, -1) {
		joined := end == m[0] && end > 0
		if !joined && before.MatchString(name[:m[0]]) || after.MatchString(name[m[1]:]) {
			continue
		}
		ids = append(ids, name[m[2]:m[3]]+"-"+name[m[4]:m[5]])
		end = m[1]
	}
	return ids
}
