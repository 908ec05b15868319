// Package match answers one question: is what a peer gave what the table of
// values wants?
//
// It compares what stands on the wire: strings, numbers, arrays and objects as
// encoding/json decodes them into any. It knows nothing of the protocol.
package match

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
)

// Mismatch says how got differs from want, or returns "". path is what it calls
// them.
//
// An object wants its members and allows others; an array wants its length;
// scalars want themselves. An object with one of these as its only member is a pattern:
// $re, a regular expression for a string; $sha256, of a string's bytes;
// $base64, a pattern for what a string encodes; $has, an array some elements
// of which match these patterns.
//
// node/match.mjs is the same in the other client's language.
func Mismatch(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		if name, arg, ok := pattern(w); ok {
			return patternMismatch(path, name, arg, got)
		}
		return objectMismatch(path, w, got)
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s = %s, want %d elements: %s", path, Brief(got), len(w), Brief(want))
		}
		for i := range w {
			if why := Mismatch(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); why != "" {
				return why
			}
		}
		return ""
	}
	if want != got {
		return fmt.Sprintf("%s = %s, want %s", path, Brief(got), Brief(want))
	}
	return ""
}

func objectMismatch(path string, want map[string]any, got any) string {
	g, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s = %s, want an object", path, Brief(got))
	}
	for key, w := range want {
		v, ok := g[key]
		if !ok {
			return fmt.Sprintf("%s.%s is missing, want %s", path, key, Brief(w))
		}
		if why := Mismatch(path+"."+key, w, v); why != "" {
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
		return fmt.Sprintf("%s = %s, want a string", path, Brief(got))
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
			return Mismatch("base64("+path+")", arg, string(plain))
		}
	}
	return fmt.Sprintf("%s = %s, want %s %s", path, Brief(got), name, Brief(arg))
}

func hasMismatch(path string, want []any, got any) string {
	g, _ := got.([]any)
next:
	for _, w := range want {
		for _, v := range g {
			if Mismatch(path, w, v) == "" {
				continue next
			}
		}
		return fmt.Sprintf("%s = %s, want an element like %s", path, Brief(got), Brief(w))
	}
	return ""
}

// Brief is the JSON of v, cut off after 400 bytes.
func Brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(b) > 400 {
		return string(b[:400]) + "…"
	}
	return string(b)
}

// Plain turns what an SDK returned into what stands on the wire.
func Plain(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(b, &out)
}

// Wire is Plain for a value that can be encoded. Of one that can't it returns why.
func Wire(v any) any {
	out, err := Plain(v)
	if err != nil {
		return err.Error()
	}
	return out
}
