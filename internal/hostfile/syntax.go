package hostfile

import (
	"bytes"
	"slices"

	"github.com/tailscale/hujson"
)

// New values have the layout of their neighbours: on separate lines if these are.

// space returns the white space before a neighbour, without comments.
func space(before hujson.Extra) hujson.Extra {
	if at := bytes.LastIndexByte(before, '\n'); at >= 0 {
		if at > 0 && before[at-1] == '\r' {
			at--
		}
		return slices.Clone(before[at:])
	}
	if before.IsStandard() {
		return slices.Clone(before)
	}
	return hujson.Extra(" ")
}

func arrayOf(words []string) *hujson.Array {
	list := &hujson.Array{}
	for i, w := range words {
		v := hujson.Value{Value: hujson.String(w)}
		if i > 0 {
			v.BeforeExtra = hujson.Extra(" ")
		}
		list.Elements = append(list.Elements, v)
	}
	return list
}

// prepend inserts words at the beginning of a list.
func prepend(list *hujson.Array, words []string) {
	if len(list.Elements) == 0 {
		list.Elements = arrayOf(words).Elements
		return
	}
	first := space(list.Elements[0].BeforeExtra)
	next := first
	if !bytes.ContainsRune(first, '\n') {
		next = hujson.Extra(" ")
	}
	var front []hujson.Value
	for i, w := range words {
		v := hujson.Value{Value: hujson.String(w), BeforeExtra: next}
		if i == 0 {
			v.BeforeExtra = first
		}
		front = append(front, v)
	}
	if bytes.Equal(list.Elements[0].BeforeExtra, first) {
		list.Elements[0].BeforeExtra = next
	}
	list.Elements = append(front, list.Elements...)
}

// chop removes the first n elements of a list.
func chop(list *hujson.Array, n int) {
	first := space(list.Elements[0].BeforeExtra)
	list.Elements = list.Elements[n:]
	if len(list.Elements) > 0 && list.Elements[0].BeforeExtra.IsStandard() {
		list.Elements[0].BeforeExtra = first
	}
}

// insertAfter inserts a member after another, on a separate line if the other is. It
// returns the new member; pointers to other members may be invalid afterwards.
func insertAfter(o *hujson.Object, after *hujson.ObjectMember, name string, value hujson.ValueTrimmed) *hujson.ObjectMember {
	at := 1
	for at <= len(o.Members) && &o.Members[at-1] != after {
		at++
	}
	m := hujson.ObjectMember{
		Name:  hujson.Value{Value: hujson.String(name), BeforeExtra: beforeNext(o, at)},
		Value: hujson.Value{Value: value, BeforeExtra: slices.Clone(space(after.Value.BeforeExtra))},
	}
	if at == len(o.Members) {
		m.Value.AfterExtra, after.Value.AfterExtra = after.Value.AfterExtra, nil
	}
	o.Members = slices.Insert(o.Members, at, m)
	return &o.Members[at]
}

// beforeNext returns the white space before a new member that is not the first.
func beforeNext(o *hujson.Object, at int) hujson.Extra {
	if at < len(o.Members) {
		return space(o.Members[at].Name.BeforeExtra)
	}
	before := space(o.Members[at-1].Name.BeforeExtra)
	if !bytes.ContainsRune(before, '\n') {
		return hujson.Extra(" ")
	}
	return before
}

// add appends a member.
func add(o *hujson.Object, name string, value hujson.ValueTrimmed) {
	if len(o.Members) > 0 {
		insertAfter(o, &o.Members[len(o.Members)-1], name, value)
		return
	}
	o.Members = []hujson.ObjectMember{{
		Name:  hujson.Value{Value: hujson.String(name), BeforeExtra: hujson.Extra(" ")},
		Value: hujson.Value{Value: value, BeforeExtra: hujson.Extra(" ")},
	}}
	o.AfterExtra = hujson.Extra(" ")
}

// remove takes a member away, and what stands before it.
func remove(o *hujson.Object, name string) {
	at := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(&m) == name })
	if at < 0 {
		return
	}
	if at == len(o.Members)-1 && at > 0 {
		o.Members[at-1].Value.AfterExtra = o.Members[at].Value.AfterExtra
	}
	if at == 0 && len(o.Members) > 1 {
		o.Members[1].Name.BeforeExtra = o.Members[0].Name.BeforeExtra
	}
	o.Members = slices.Delete(o.Members, at, at+1)
}
