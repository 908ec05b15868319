package mcp

import "github.com/mcpbridge/mcpbridge/internal/limits"

// Places bounds a number of objects, in total and for each share. It has no lock.
type Places struct {
	All, Each    *limits.Limit // the limits' names
	Max, MaxEach int

	n    int
	each map[Share]int
}

// PlacesOf returns Places of a set of limits.
func PlacesOf(s limits.Set, all, each *limits.Limit) Places {
	return Places{All: all, Each: each, Max: s.Int(all), MaxEach: s.Int(each)}
}

// Full returns the limit that prevents another place for a share, and its value; nil if
// there is a place.
func (p *Places) Full(share Share) (limit *limits.Limit, most int) {
	switch {
	case p.each[share] >= p.MaxEach:
		return p.Each, p.MaxEach
	case p.n >= p.Max:
		return p.All, p.Max
	}
	return nil, 0
}

// Take takes a place for a share.
func (p *Places) Take(share Share) {
	if p.each == nil {
		p.each = make(map[Share]int)
	}
	p.n++
	p.each[share]++
}

// Give gives back a place of a share.
func (p *Places) Give(share Share) {
	p.n--
	if p.each[share]--; p.each[share] == 0 {
		delete(p.each, share)
	}
}

// fewest is how many places a share keeps at least: what has one less than before still has
// more than whom it was ended for.
const fewest = 2

// Biggest returns the share with the most places: one of its objects yields to one of a share
// that has none. It reports false if the share has some, or nobody more than an equal part. It
// looks at all shares.
func (p *Places) Biggest(to Share) (share Share, ok bool) {
	if p.each[to] > 0 {
		return Share{}, false
	}
	most := max(fewest, p.Max/(len(p.each)+1))
	for s, n := range p.each {
		if n > most {
			share, most, ok = s, n, true
		}
	}
	return share, ok
}

// Len returns how many places are taken.
func (p *Places) Len() int { return p.n }
