package bridgetest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Name stands for what is random in a transcript. Each value that Find has as its
// first group is replaced wherever it is found, by Kind and a number in the order of
// first appearance, so that equal values stay equal.
type Name struct {
	Kind string
	Find *regexp.Regexp
}

// shortest is the least length of a value that is replaced: a shorter one would be found
// where it is not meant.
const shortest = 6

// Transcript returns what was recorded in the txtar format: intro, and a section for each
// channel, in the order of their beginnings. What begins at the same time is in the order
// of its text. Each entry begins with its time, in a column of its own.
func (r *Recorder) Transcript(intro string, names []Name) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	sections := make([]section, 0, len(r.channels))
	for _, c := range r.channels {
		if len(c.entries) > 0 {
			sections = append(sections, c.section(names))
		}
	}
	slices.SortStableFunc(sections, func(a, b section) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.wire, b.wire), cmp.Compare(a.nameless, b.nameless))
	})
	var out strings.Builder
	out.WriteString(intro + "\n\n")
	count := make(map[string]int)
	for _, s := range sections {
		count[s.wire]++
		fmt.Fprintf(&out, "-- %s %d: %s --\n%s", s.wire, count[s.wire], s.title, s.text)
	}
	return numbered(r, out.String(), names)
}

type section struct {
	at          time.Duration
	wire, title string
	text        string
	nameless    string // text with all random values replaced by their kinds
}

// section is called with the recorder's lock held.
func (c *channel) section(names []Name) section {
	var out strings.Builder
	for _, e := range c.entries {
		stamp := c.r.stamp(e.at).String()
		for line := range strings.SplitSeq(e.text, "\n") {
			out.WriteString(strings.TrimRight(fmt.Sprintf("%-9s %s %s", stamp, e.mark, line), " ") + "\n")
			stamp = ""
		}
	}
	s := section{at: c.r.stamp(c.entries[0].at), wire: c.wire, title: c.title, text: out.String()}
	s.nameless = s.text
	for _, n := range names {
		s.nameless = replaceGroups(s.nameless, n)
	}
	return s
}

func replaceGroups(text string, n Name) string {
	var out strings.Builder
	end := 0
	for _, at := range n.Find.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(text[end:at[2]] + n.Kind)
		end = at[3]
	}
	return out.String() + text[end:]
}

// found is a random value and where it was found first.
type found struct {
	value, kind string
	at          int
}

// numbered replaces all random values of text.
func numbered(r *Recorder, text string, names []Name) string {
	all := findValues(text, names)
	count := make(map[string]int)
	pairs := make(map[string]string)
	for _, f := range all {
		if len(f.value) < shortest {
			r.t.Errorf("%s %q is too short to be replaced", f.kind, f.value)
			continue
		}
		if pairs[f.value] == "" {
			count[f.kind]++
			pairs[f.value] = fmt.Sprintf("%s-%d", f.kind, count[f.kind])
		}
	}
	slices.SortFunc(all, func(a, b found) int { return len(b.value) - len(a.value) }) // a value may be part of another
	for _, f := range all {
		if name := pairs[f.value]; name != "" {
			text = strings.ReplaceAll(text, f.value, name)
		}
	}
	return text
}

// findValues returns them in the order in which they are found.
func findValues(text string, names []Name) []found {
	var all []found
	for _, n := range names {
		for _, at := range n.Find.FindAllStringSubmatchIndex(text, -1) {
			all = append(all, found{text[at[2]:at[3]], n.Kind, at[2]})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return a.at - b.at })
	return all
}
