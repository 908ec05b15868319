package admin

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// maxLogin bounds the body of a login, in bytes.
const maxLogin = 4 << 10

// open are the files that a browser needs before it has a session. They are the same
// everywhere, and have no data.
var open = map[string]bool{"login.html": true, "login.js": true, "style.css": true, "icon.svg": true}

// route serves the page and its files, and the sessions of the page.
func (g *guard) route(mux *http.ServeMux, files fs.FS) {
	serve := http.FileServerFS(files)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if g.closed || !g.hasCookie(r) {
			g.askToken(w, r, files)
			return
		}
		serveFile(w, r, files, "index.html", http.StatusOK)
	})
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { g.askToken(w, r, files) })
	mux.HandleFunc("GET /assets/{file}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("file")
		if !open[name] && (g.closed || !g.hasCookie(r)) {
			g.challenge(w)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		r.URL.Path = "/" + path.Base(name)
		serve.ServeHTTP(w, r)
	})
	mux.HandleFunc("POST /login", g.login)
	mux.HandleFunc("POST /logout", g.logout)
	mux.HandleFunc("POST /api/link", g.link)
}

// hasCookie reports whether a request has the cookie of a session, which is enough for
// files, or the token if there is one.
func (g *guard) hasCookie(r *http.Request) bool {
	_, ok := g.sessions.find(r)
	return ok || g.wanted().allows(r)
}

// askToken serves the form that asks for the token. Its status says that there is no
// session; the field that would have a browser ask by itself is left out.
func (g *guard) askToken(w http.ResponseWriter, r *http.Request, files fs.FS) {
	if g.closed {
		g.refuseExposed(w)
		return
	}
	serveFile(w, r, files, "login.html", http.StatusUnauthorized)
}

func serveFile(w http.ResponseWriter, _ *http.Request, files fs.FS, name string, code int) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(text) // the browser has gone if it fails
}

// login trades the token, or the code of a link, for a session.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	var body struct{ Token, Code string }
	if !isJSON(r) {
		http.Error(w, "send the token as JSON", http.StatusUnsupportedMediaType)
		return
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLogin)).Decode(&body)
	right := err == nil && (body.Code != "" && g.links.use(body.Code) || body.Code == "" && g.wanted().is(body.Token))
	switch {
	case right:
	case err == nil && g.wrongs.take(r):
		slow(w)
		return
	case body.Code != "":
		http.Error(w, "this link was used before, or is over a minute old; mcpbridge admin prints another one", http.StatusUnauthorized)
		return
	default:
		http.Error(w, "that is not the admin token", http.StatusUnauthorized)
		return
	}
	cookie, key, expires := g.sessions.begin()
	setCookie(w, r, cookie, sessionLife)
	answer(w, http.StatusOK, struct {
		Key     string    `json:"key"`
		Expires time.Time `json:"expires"`
	}{key, expires})
}

// logout ends the session. Who has the cookie alone may do that, too.
func (g *guard) logout(w http.ResponseWriter, r *http.Request) {
	if !isJSON(r) {
		http.Error(w, "send JSON", http.StatusUnsupportedMediaType)
		return
	}
	g.sessions.end(r)
	setCookie(w, r, "", -time.Second)
	w.WriteHeader(http.StatusNoContent)
}

// receive reads a body of at most so many bytes into v, and refuses one that is not said to be JSON,
// as no form of another page is.
func receive(w http.ResponseWriter, r *http.Request, most int64, v any) (said bool, err error) {
	if !isJSON(r) {
		http.Error(w, "send JSON", http.StatusUnsupportedMediaType)
		return false, nil
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	return true, err
}

// isJSON reports whether the body is JSON, as it says: a form of another page can't say so
// without asking first.
func isJSON(r *http.Request) bool {
	typ, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(typ), "application/json")
}
