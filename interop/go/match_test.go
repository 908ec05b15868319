package interop

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
)

// mismatch says how got differs from want, or returns "".
//
// An object wants its members and allows others; an array wants its length;
// scalars want themselves. An object with one of these as its only member is a pattern:
// $re, a regular expression for a string; $sha256, of a string's bytes;
// $base64, a pattern for what a string encodes; $has, an array some elements
// of which match these patterns.
//
// node/match.mjs is the same in the other client's language.
func mismatch(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		if name, arg, ok := pattern(w); ok {
			return patternMismatch(path, name, arg, got)
		}
		return objectMismatch(path, w, got)
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s = %s, want %d elements: %s", path, brief(got), len(w), brief(want))
		}
		for i := range w {
			if why := mismatch(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); why != "" {
				return why
			}
		}
		return ""
	}
	if want != got {
		return fmt.Sprintf("%s = %s, want %s", path, brief(got), brief(want))
	}
	return ""
}

func objectMismatch(path string, want map[string]any, got any) string {
	g, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s = %s, want an object", path, brief(got))
	}
	for key, w := range want {
		v, ok := g[key]
		if !ok {
			return fmt.Sprintf("%s.%s is missing, want %s", path, key, brief(w))
		}
		if why := mismatch(path+"."+key, w, v); why != "" {
			return why
		}
	}
	return ""
}

func pattern(w map[string]any) (name string, arg any, ok bool) {
	for _, name := range []string{"$re", "$sha256", "$base64", "$has"} {
		if arg, ok := w[name]; ok && len(w) == 1 {
			return name, arg, true
		}
	}
	return "", nil, false
}

func patternMismatch(path, name string, arg, got any) string {
	if name == "$has" {
		return hasMismatch(path, arg.([]any), got)
	}
	s, ok := got.(string)
	if !ok {
		return fmt.Sprintf("%s = %s, want a string", path, brief(got))
	}
	switch name {
	case "$re":
		if regexp.MustCompile(arg.(string)).MatchString(s) {
			return ""
		}
	case "$sha256":
		if sum := sha256.Sum256([]byte(s)); hex.EncodeToString(sum[:]) == arg {
			return ""
		}
	case "$base64":
		if plain, err := base64.StdEncoding.DecodeString(s); err == nil {
			return mismatch("base64("+path+")", arg, string(plain))
		}
	}
	return fmt.Sprintf("%s = %s, want %s %s", path, brief(got), name, brief(arg))
}

func hasMismatch(path string, want []any, got any) string {
	g, _ := got.([]any)
next:
	for _, w := range want {
		for _, v := range g {
			if mismatch(path, w, v) == "" {
				continue next
			}
		}
		return fmt.Sprintf("%s = %s, want an element like %s", path, brief(got), brief(w))
	}
	return ""
}

func brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(b) > 400 {
		return string(b[:400]) + "…"
	}
	return string(b)
}

// plain turns what an SDK returned into what stands on the wire.
func plain(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(b, &out)
}

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
			if why := mismatch("$", want, got); (why == "") != tt.match {
				t.Errorf("mismatch(%s, %s) = %q, want match = %v", tt.want, tt.got, why, tt.match)
			}
		})
	}
}
