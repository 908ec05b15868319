package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestString(t *testing.T) {
	r := New("s3cr3t-value", "s3cr3t-value-longer", "short", "p@ss word/\"<ü>", "ada:hunter22", "overlap-ab", "ab-overlap-cd")
	odd := "p@ss word/\"<ü>"
	inJSON, _ := json.Marshal(odd)
	twice, _ := json.Marshal(fmt.Sprintf("%q", odd))
	for _, tt := range []struct{ name, in, want string }{
		{"none", "nothing to hide here", "nothing to hide here"},
		{"alone", "s3cr3t-value", Hidden},
		{"within", "a s3cr3t-value b", "a " + Hidden + " b"},
		{"twice", "s3cr3t-value,s3cr3t-value", Hidden + "," + Hidden},
		{"the longest", "s3cr3t-value-longer!", Hidden + "!"},
		{"too short to be one", "short", "short"},
		{"in a query", "?k=" + url.QueryEscape(odd) + "&a=1", "?k=" + Hidden + "&a=1"},
		{"in a path", "/" + url.PathEscape(odd), "/" + Hidden},
		{"escapes in lower case", strings.ToLower(url.QueryEscape(odd)), Hidden},
		{"in JSON", string(inJSON), `"` + Hidden + `"`},
		{"in quotes within JSON", string(twice), `"\"` + Hidden + `\""`},
		{"basic", "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:hunter22")), "Basic " + Hidden},
		{"overlapping", "overlap-ab-overlap-cd", Hidden},
		{"cut", "of s3cr3t-va… and on", "of " + Hidden + "… and on"},
		{"cut, and not a secret", "of s3cr3x-va… and on", "of s3cr3x-va… and on"},
		{"begun", "of s3cr3t-va and on", "of s3cr3t-va and on"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := r.String(tt.in); got != tt.want {
				t.Errorf("String(%q) = %q, want %q", tt.in, got, tt.want)
			}
			if got := string(r.Bytes([]byte(tt.in))); got != tt.want {
				t.Errorf("Bytes(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// A Redactor without secrets changes nothing, and can learn some.
func TestLearn(t *testing.T) {
	var none *Redactor
	var r Redactor
	for _, r := range []*Redactor{none, &r, New(), New("", "five5")} {
		if got := r.String("five5 or more"); got != "five5 or more" {
			t.Errorf("String = %q, want what went in", got)
		}
	}
	r.Learn("first-secret")
	r.Learn("second-secret")
	if got := r.String("first-secret second-secret"); got != Hidden+" "+Hidden {
		t.Errorf("String = %q after two were learnt", got)
	}
}

func TestLooks(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"cannot open /etc/x: permission denied", "cannot open /etc/x: permission denied"},
		{"Authorization: Bearer abc.def", "Authorization: [hidden] [hidden]"},
		{"postgres://ada:pw@db/x unreachable", "postgres://ada:[hidden]@db/x unreachable"},
		{`{"api_key": "12345"}`, `{"api_key": "[hidden]"}`},
		{"bad key sk-live-0123456789abcdef", "bad key [hidden]"},
		{"GITHUB_TOKEN=ghp_0123456789abcdef0123 rejected", "GITHUB_TOKEN=[hidden] rejected"},
	} {
		if got := Looks(tt.in); got != tt.want {
			t.Errorf("Looks(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// The output never contains a secret, except one that the mark of another completes.
func FuzzString(f *testing.F) {
	f.Add("a secret-one", "secret-one")
	f.Add("aaaaaaaaaaab", "aaaaaab")
	f.Add("x…", "xxxxxxx")
	f.Fuzz(func(t *testing.T, text, secret string) {
		if strings.Contains(Hidden, secret) || len(secret) < MinSecret {
			return
		}
		got := New(secret).String(text)
		for part := range strings.SplitSeq(got, Hidden) {
			if strings.Contains(part, secret) {
				t.Errorf("String(%q) = %q, which holds %q", text, got, secret)
			}
		}
	})
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		in   string
		most int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "longe…"},
		{"aüb", 2, "a…"},
		{"aüb", 3, "aü…"},
		{"x", 0, "…"},
		{"\xbf\xbf", 1, "…"},
	} {
		if got := Cut(tt.in, tt.most); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.in, tt.most, got, tt.want)
		}
	}
}
