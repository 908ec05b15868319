package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// adminHandler serves what doc.go lists.
func adminHandler(b *board, g *gate) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := do(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v) // the test is gone if this fails
		})
	}
	handle("POST /admin/cut", func(r *http.Request) (any, error) { return b.cut(r, g) })
	handle("POST /admin/touch", func(r *http.Request) (any, error) {
		times, err := strconv.Atoi(cmp.Or(r.FormValue("times"), "1"))
		if err != nil {
			return nil, err
		}
		touched, err := b.touch(r.Context(), r.Form["uri"], times)
		return entries{touched}, err
	})
	handle("POST /admin/change", func(r *http.Request) (any, error) {
		return struct{}{}, b.changeList(r.FormValue("kind"))
	})
	handle("POST /admin/log", func(r *http.Request) (any, error) {
		return struct{}{}, b.log(r.Context(), r.FormValue("level"), r.FormValue("text"))
	})
	handle("GET /admin/subscriptions", func(*http.Request) (any, error) { return b.subscriptions(), nil })
	handle("GET /admin/ledger", func(r *http.Request) (any, error) {
		seq, err := strconv.Atoi(cmp.Or(r.FormValue("after"), "0"))
		return entries{b.ledger.after(seq)}, err
	})
	return mux
}

func (b *board) cut(r *http.Request, g *gate) (any, error) {
	how := cmp.Or(r.FormValue("how"), "abrupt")
	if how != "abrupt" && how != "clean" {
		return nil, fmt.Errorf("how is %q, want abrupt or clean", how)
	}
	hold, err := time.ParseDuration(cmp.Or(r.FormValue("hold"), "0s"))
	if err != nil {
		return nil, err
	}
	n := g.cut(how == "abrupt", hold)
	b.ledger.add(entry{What: "cut", Kind: how})
	return struct {
		Streams int `json:"streams"`
	}{n}, nil
}
