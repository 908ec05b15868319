package group

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// benchMembers returns n members with tools of the size that servers have.
func benchMembers(n, tools int) (members []*fake) {
	for i := range n {
		var items []string
		for j := range tools {
			items = append(items, fmt.Sprintf(`{"name":"read_file_%d","title":"Read a file","description":"Reads a file of the workspace as text, and returns its lines with their numbers. Use it before you edit a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"The path of the file, relative to the root of the workspace."},"from":{"type":"integer","minimum":1},"lines":{"type":"integer"}},"required":["path"]},"annotations":{"readOnlyHint":true}}`, j))
		}
		f := newFake(fmt.Sprintf("server%d", i))
		f.era, f.cache = spec.Legacy, mcp.CacheHint{TTL: 60_000, Public: true}
		f.pages[spec.MethodToolsList] = [][]string{items}
		res, err := f.reply(request(spec.MethodToolsList, ""))
		if err != nil {
			panic(err)
		}
		kept := *res
		f.bench = func() *mcp.Result { out := kept; return &out } // as from a cache
		members = append(members, f)
	}
	return members
}

// BenchmarkList joins the lists of members, which have them at hand.
func BenchmarkList(b *testing.B) {
	for _, without := range []bool{false, true} {
		for _, n := range []int{1, 10, 50} {
			b.Run(fmt.Sprintf("bare=%v/members=%d", without, n), func(b *testing.B) {
				r := newRig(b, func(o *Options) { o.Bare = without }, benchMembers(n, 40)...)
				req, size := request(spec.MethodToolsList, ""), 0
				b.ReportAllocs()
				for b.Loop() {
					res, err := r.serveList(b.Context(), req, mcp.Nobody{})
					if err != nil {
						b.Fatal(err)
					}
					size = len(res.Body)
					res.Release()
				}
				b.SetBytes(int64(size))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n*40), "ns/item")
			})
		}
	}
}

// BenchmarkReadPage reads the page of one member.
func BenchmarkReadPage(b *testing.B) {
	f := benchMembers(1, 40)[0]
	r, l := newRig(b, nil, f), listOf(spec.MethodToolsList)
	res := f.bench()
	b.SetBytes(int64(len(res.Body)))
	b.ReportAllocs()
	for b.Loop() {
		r.listings.readPage(0, l, res, unmarked)
	}
}

// BenchmarkOwner finds who has a tool.
func BenchmarkOwner(b *testing.B) {
	for _, without := range []bool{false, true} {
		b.Run(fmt.Sprintf("bare=%v", without), func(b *testing.B) {
			members := benchMembers(50, 40)
			members[7].pages[spec.MethodToolsList] = [][]string{toolItems("only_here")}
			members[7].bench = nil
			r := newRig(b, func(o *Options) { o.Bare = without }, members...)
			req, name := request(spec.MethodToolsCall, ""), r.shown(7, policy.Tool, "only_here")
			b.ReportAllocs()
			for b.Loop() {
				if m, _, err := r.finder.ownerOf(b.Context(), req, policy.Tool, name); err != nil || m.index != 7 {
					b.Fatal(m.index, err)
				}
			}
		})
	}
}

// BenchmarkCall has a member serve a call, which it answers at once: so all is the group's own
// part, through what takes calls of apps, too. Without a group is what the rest costs.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		text := strings.Repeat("x ", size/2)
		params := fmt.Sprintf(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"server7__read_file_3","arguments":{"text":%q}}`, text)
		for _, group := range []bool{false, true} {
			b.Run(fmt.Sprintf("bytes=%d/group=%v", size, group), func(b *testing.B) {
				members := benchMembers(50, 1)
				result := fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}],"resultType":"complete"}`, text)
				members[7].bench = func() *mcp.Result {
					res := mcp.NewResult(result, nil)
					res.Era = spec.Modern
					return res
				}
				r := newRig(b, nil, members...)
				h := mcp.Handler(members[7])
				if group {
					h = r.apps(r.Back)
				}
				req := request(spec.MethodToolsCall, params)
				b.ReportAllocs()
				for b.Loop() {
					res, err := h.Serve(b.Context(), req, mcp.Nobody{})
					if err != nil {
						b.Fatal(err)
					}
					res.Release()
				}
			})
		}
	}
}
