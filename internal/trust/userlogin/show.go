package userlogin

import (
	"html/template"
	"net/http"
)

// The ways to prove who one is.
const (
	wayToken       = "token"
	wayCertificate = "certificate"
	wayIssuer      = "issuer"
)

// secure sets the headers of all pages. They load nothing, run nothing, and stand in no frame.
// Forms may lead to any site, since the answer to one sends the browser to an authorization server.
func secure(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with none, browsers send no Origin with forms
	h.Set("X-Content-Type-Options", "nosniff")
}

const head = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>mcpbridge</title>`

var (
	words = template.Must(template.New("words").Parse(head + `<p>{{.}}</p></html>`))

	question = template.Must(template.New("question").Parse(head + `
<h1>Log in at {{.Host}}</h1>
<p>Your program calls the server <b>{{.Server}}</b> through mcpbridge, and that server wants you to log in. First prove who you are: the login will be used for your own calls only.</p>
<p><b>Go on only if you have just used that program yourself.</b> If somebody has sent you this link, close the page.</p>
{{range .Ways}}<form method="post" action=""><input type="hidden" name="word" value="{{$.Word}}"><input type="hidden" name="way" value="{{.}}">
{{if eq . "issuer"}}<button>Log in at {{$.Issuer}}</button>{{else if eq . "certificate"}}<button>Use the certificate of this browser</button>{{else}}<label>The token that your program sends to mcpbridge<br><input type="password" name="token" autocomplete="off" required></label> <button>Use this token</button>{{end}}</form>
{{end}}</html>`))
)

// show writes a page that says something.
func show(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_ = words.Execute(w, text) // the browser has gone if it fails
}

// ask writes the page that asks for a proof.
func (d *Door) ask(w http.ResponseWriter, r *http.Request, v *visit) {
	page := struct {
		Host, Server, Word, Issuer string
		Ways                       []string
	}{Host: d.Server.host(), Server: v.Server, Word: v.Word}
	if flow := d.issuer(v); flow != nil {
		page.Issuer, page.Ways = hostOf(flow.Issuer), append(page.Ways, wayIssuer)
	}
	if d.hasCertificate(r) {
		page.Ways = append(page.Ways, wayCertificate)
	}
	if d.Tokens {
		page.Ways = append(page.Ways, wayToken)
	}
	_ = question.Execute(w, page) // the browser has gone if it fails
}
