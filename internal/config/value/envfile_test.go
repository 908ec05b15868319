package value

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseEnv(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     map[string]string
	}{
		{"plain", "A=b\nC=d", map[string]string{"A": "b", "C": "d"}},
		{"spaces, export, empty", " export  A = b c \nB=\n\n", map[string]string{"A": "b c", "B": ""}},
		{"comments", "# no\nA=b # yes\nB=a#b\nC= # none\n", map[string]string{"A": "b", "B": "a#b", "C": ""}},
		{"quotes", `A='$b \n #' # c` + "\n" + `B="a\nb \"c\" \\ $d"`, map[string]string{"A": `$b \n #`, "B": "a\nb \"c\" \\ $d"}},
		{"over lines", "A=\"b\nc\"\nD='e\nf'\nG=h", map[string]string{"A": "b\nc", "D": "e\nf", "G": "h"}},
		{"Windows", "\ufeffA=b\r\nB=\"c\"\r\n", map[string]string{"A": "b", "B": "c"}},
		{"an equals sign, an apostrophe", "A=b=c==\nB=it's", map[string]string{"A": "b=c==", "B": "it's"}},
		{"the last counts", "A=b\nA=c", map[string]string{"A": "c"}},
		{"nothing", "", map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, line, err := parseEnv(tt.in)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("parseEnv(%q) = %q, line %d, %v, want %q", tt.in, got, line, err, tt.want)
			}
		})
	}
}

func FuzzParseEnv(f *testing.F) {
	for _, s := range []string{"A=b", "A=\"", "A='b'c", "export A=\n#", "A=\\\"\n\"\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		vars, line, err := parseEnv(s)
		if lines := strings.Count(s, "\n") + 2; line < 1 || line > lines {
			t.Errorf("parseEnv(%q) ends on line %d of %d", s, line, lines)
		}
		if (vars == nil) != (err != nil) {
			t.Errorf("parseEnv(%q) = %q, %v", s, vars, err)
		}
	})
}
