package match

import (
	"encoding/json"
	"testing"
)

// TestMismatch proves that the assertions of the table can fail.
func TestMismatch(t *testing.T) {
	for _, tt := range []struct {
		name, want, got string
		match           bool
	}{
		{"scalar", `1`, `1`, true},
		{"other scalar", `1`, `"1"`, false},
		{"members may be more", `{"a":1}`, `{"a":1,"b":2}`, true},
		{"member missing", `{"a":1}`, `{"b":2}`, false},
		{"null is not missing", `{"a":null}`, `{}`, false},
		{"array", `[1,2]`, `[1,2]`, true},
		{"array longer", `[1]`, `[1,2]`, false},
		{"array in another order", `[1,2]`, `[2,1]`, false},
		{"regular expression", `{"$re":"^a+$"}`, `"aaa"`, true},
		{"regular expression, no match", `{"$re":"^a+$"}`, `"b"`, false},
		{"regular expression, no string", `{"$re":"1"}`, `1`, false},
		{"digest", `{"$sha256":"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"}`, `"foo"`, true},
		{"digest of something else", `{"$sha256":"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"}`, `"bar"`, false},
		{"base64", `{"$base64":"foo"}`, `"Zm9v"`, true},
		{"base64 of something else", `{"$base64":{"$re":"^b"}}`, `"Zm9v"`, false},
		{"has", `{"$has":[{"a":1}]}`, `[{"a":2},{"a":1,"b":3}]`, true},
		{"has not", `{"$has":[{"a":1}]}`, `[{"a":2}]`, false},
		{"no pattern", `{"$ref":"#/a"}`, `{"$ref":"#/a"}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want, got any
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tt.got), &got); err != nil {
				t.Fatal(err)
			}
			if why := Mismatch("$", want, got); (why == "") != tt.match {
				t.Errorf("Mismatch(%s, %s) = %q, want match = %v", tt.want, tt.got, why, tt.match)
			}
		})
	}
}
