package admin

import (
	"net/http"
	"net/http/pprof"
	rpprof "runtime/pprof"
	"strconv"
)

// maxProfile bounds how long a profile or a trace takes, in seconds.
const maxProfile = 120

// profiles serves profiles of the process, but not its command line, which may have secrets.
func profiles(mux *http.ServeMux, g *guard) {
	mux.Handle("GET /debug/pprof/{$}", g.data(http.HandlerFunc(listProfiles)))
	mux.Handle("GET /debug/pprof/profile", g.data(bounded(pprof.Profile)))
	mux.Handle("GET /debug/pprof/trace", g.data(bounded(pprof.Trace)))
	mux.Handle("GET /debug/pprof/symbol", g.data(http.HandlerFunc(pprof.Symbol)))
	mux.Handle("POST /debug/pprof/symbol", g.data(http.HandlerFunc(pprof.Symbol)))
	mux.Handle("GET /debug/pprof/{name}", g.data(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bounded(pprof.Handler(r.PathValue("name")).ServeHTTP)(w, r)
	})))
}

func listProfiles(w http.ResponseWriter, _ *http.Request) {
	names := []string{"profile", "trace"}
	for _, p := range rpprof.Profiles() {
		names = append(names, p.Name())
	}
	answer(w, http.StatusOK, struct {
		Profiles []string `json:"profiles"`
	}{names})
}

// bounded refuses what would take too long.
func bounded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if n, err := strconv.ParseFloat(r.FormValue("seconds"), 64); err == nil && n > maxProfile {
			http.Error(w, "seconds is over "+strconv.Itoa(maxProfile), http.StatusBadRequest)
			return
		}
		next(w, r)
	}
}
