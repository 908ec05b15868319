package admin

import (
	"net/http"
)

// logins serves the logins of users at servers.
func (a *api) logins(w http.ResponseWriter, r *http.Request) {
	if a.opts.Logins == nil {
		answer(w, http.StatusOK, struct {
			Logins []any `json:"logins"`
		}{[]any{}})
		return
	}
	all, err := a.opts.Logins.Logins(r.Context())
	if err != nil {
		http.Error(w, "the logins can't be read: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer(w, http.StatusOK, all)
}

// endLogins ends those of a principal.
func (a *api) endLogins(w http.ResponseWriter, r *http.Request) {
	var body struct{ Server, Principal string }
	said, err := receive(w, r, maxLogin, &body)
	if !said {
		return
	}
	switch {
	case err != nil || body.Principal == "":
		http.Error(w, "send an object with principal, and server unless all are meant", http.StatusBadRequest)
		return
	case a.opts.Logins == nil:
		http.Error(w, "no server has logins of its users", http.StatusNotFound)
		return
	}
	ended, err := a.opts.Logins.EndLogins(r.Context(), body.Server, body.Principal)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer(w, http.StatusOK, struct {
		Ended any `json:"ended"`
	}{ended})
}
