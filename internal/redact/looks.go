package redact

import "regexp"

// looks are patterns of credentials: in headers, in URLs, after a name such as token, and
// with a well-known prefix.
var looks = []struct {
	like *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+\S+`), "$1 " + Hidden},
	{regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+@`), "$1" + Hidden + "@"},
	{regexp.MustCompile(`(?i)([\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|credential|authorization)[\w-]*["']?\s*[=:]\s*["']?)[^\s"',;]+`), "$1" + Hidden},
	{regexp.MustCompile(`\b(?:sk|pk|ghp|gho|ghs|github_pat|xox[abp]|eyJ|AKIA|glpat)[-_A-Za-z0-9.]{12,}`), Hidden},
}

// Looks hides the parts of text that look like credentials.
func Looks(text string) string {
	for _, l := range looks {
		text = l.like.ReplaceAllString(text, l.as)
	}
	return text
}
