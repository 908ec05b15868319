package hostfile

import (
	"bytes"
	"slices"
	"sort"
)

// A Run is lines that two texts have in common: N of them, from line A of one and B of the other,
// counted from 0.
type Run struct{ A, B, N int }

// Lines returns the lines of a text, with their ends.
func Lines(text []byte) [][]byte { return slices.Collect(bytes.Lines(text)) }

// Common returns which lines two texts have in common, in their order. It goes by the lines that
// are in each of them once, and by those around them: it takes no more than n log n steps, and
// does not take the brackets of one server for those of another.
func Common(a, b [][]byte) (runs []Run) {
	next := Run{} // from where lines may be in common
	for _, at := range append(onceInBoth(a, b), Run{len(a), len(b), 0}) {
		if at.A < next.A || at.B < next.B {
			continue
		}
		begin := at
		for begin.A > next.A && begin.B > next.B && bytes.Equal(a[begin.A-1], b[begin.B-1]) {
			begin.A, begin.B = begin.A-1, begin.B-1
		}
		n := at.A - begin.A
		for begin.A+n < len(a) && begin.B+n < len(b) && bytes.Equal(a[begin.A+n], b[begin.B+n]) {
			n++
		}
		if n > 0 {
			runs = append(runs, Run{begin.A, begin.B, n})
		}
		next = Run{begin.A + n, begin.B + n, 0}
	}
	return runs
}

// onceInBoth returns the beginning of both texts, and the most lines that each has once, in the
// same order.
func onceInBoth(a, b [][]byte) []Run {
	type count struct{ a, b, atB int }
	counts := make(map[string]count)
	for _, line := range a {
		c := counts[string(line)]
		c.a++
		counts[string(line)] = c
	}
	for i, line := range b {
		c := counts[string(line)]
		c.b, c.atB = c.b+1, i
		counts[string(line)] = c
	}
	// The longest rising sequence of the places in b: ends has the last one of each length.
	var all []Run
	var ends, before []int
	for i, line := range a {
		c := counts[string(line)]
		if c.a != 1 || c.b != 1 {
			continue
		}
		n := sort.Search(len(ends), func(k int) bool { return all[ends[k]].B >= c.atB })
		last := -1
		if n > 0 {
			last = ends[n-1]
		}
		all, before = append(all, Run{i, c.atB, 1}), append(before, last)
		if n == len(ends) {
			ends = append(ends, 0)
		}
		ends[n] = len(all) - 1
	}
	var runs []Run
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = before[i] {
			runs = append(runs, all[i])
		}
	}
	runs = append(runs, Run{}) // the beginning
	slices.Reverse(runs)
	return runs
}

// apply makes changes, which are in their order.
func apply(data []byte, hunks []hunk) []byte {
	var out []byte
	at := 0
	for _, h := range hunks {
		out = append(append(out, data[at:h.from]...), h.text...)
		at = h.to
	}
	return append(out, data[at:]...)
}

func inOrder(hunks []hunk) []hunk {
	slices.SortStableFunc(hunks, func(a, b hunk) int { return a.from - b.from })
	return hunks
}

// takeBack returns, for each change that was made of before, the one that undoes it in data, which
// was changed since; nil if its lines are not as they were made. What was removed between two lines
// is put back after the first of them, or before the second.
func takeBack(before []byte, hunks []hunk, data []byte, second bool) []*hunk {
	installed := apply(before, hunks)
	m := commonOffsets(installed, data)
	back := make([]*hunk, len(hunks))
	shift := 0
	for i, h := range hunks {
		begin := h.from + shift
		shift += len(h.text) - (h.to - h.from)
		if at := m.place(begin, begin+len(h.text), second); at >= 0 {
			back[i] = &hunk{at, at + len(h.text), string(before[h.from:h.to])}
		}
	}
	return back
}

// offsets are parts that two texts have in common, by their offsets.
type offsets []Run

func commonOffsets(a, b []byte) (all offsets) {
	la, lb := Lines(a), Lines(b)
	offA, offB, i, j := 0, 0, 0, 0
	for _, r := range Common(la, lb) {
		for ; i < r.A; i++ {
			offA += len(la[i])
		}
		for ; j < r.B; j++ {
			offB += len(lb[j])
		}
		n := 0
		for ; i < r.A+r.N; i, j = i+1, j+1 {
			n += len(la[i])
		}
		all = append(all, Run{offA, offB, n})
		offA, offB = offA+n, offB+n
	}
	return all
}

// place returns where a part of the first text is in the second one; negative for nowhere. An empty
// part between two lines is where the second begins if that is asked for, or else where the first
// ends.
func (all offsets) place(begin, end int, second bool) int {
	at := -1
	if end == 0 && !second {
		return 0
	}
	first := sort.Search(len(all), func(i int) bool { return all[i].A+all[i].N >= begin })
	for _, r := range all[first:] {
		if r.A > begin {
			break
		}
		switch {
		case end > r.A+r.N:
		case begin == end && (begin == r.A && !second || begin == r.A+r.N && second):
			if at < 0 {
				at = r.B + begin - r.A // the other line is not there
			}
		default:
			return r.B + begin - r.A
		}
	}
	return at
}
