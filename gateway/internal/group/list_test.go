package group

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func TestG07ListsAreInOrder(t *testing.T) {
	files, docs := newFake("files", "write", "read"), newFake("docs", "search")
	files.pages[spec.MethodToolsList] = [][]string{toolItems("write", "read"), toolItems("list")}
	docs.pages[spec.MethodToolsList] = [][]string{toolItems("search"), toolItems("find"), toolItems("cite")}
	r := newRig(t, nil, files, docs, newFake("notes", "add"))
	res, err := r.serveList(t.Context(), request(spec.MethodToolsList, ""), &backtest.Caller{})
	t.Log(body(t, res, err))
}
