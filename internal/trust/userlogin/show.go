package userlogin

import (
	"html"
	"io"
	"net/http"
	"strings"
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

// The parts of the page that asks for a proof. It is not made of package html/template, with which the
// linker keeps all methods of all types.
const (
	question = head + `
<h1>Log in at {host}</h1>
<p>Your program calls the server <b>{server}</b> through mcpbridge, and that server wants you to log in. First prove who you are: the login will be used for your own calls only.</p>
<p><b>Go on only if you have just used that program yourself.</b> If somebody has sent you this link, close the page.</p>
`
	form = `<form method="post" action=""><input type="hidden" name="word" value="{word}"><input type="hidden" name="way" value="{way}">
{proof}</form>
`
)

// proofs are what a form has for each way.
var proofs = map[string]string{
	wayIssuer:      `<button>Log in at {issuer}</button>`,
	wayCertificate: `<button>Use the certificate of this browser</button>`,
	wayToken:       `<label>The token that your program sends to mcpbridge<br><input type="password" name="token" autocomplete="off" required></label> <button>Use this token</button>`,
}

// A proofPage asks for a proof.
type proofPage struct {
	host, server, word, issuer string
	ways                       []string
}

// html returns the page.
func (p *proofPage) html() string {
	text := question
	for _, way := range p.ways {
		text += strings.NewReplacer("{way}", way, "{proof}", proofs[way]).Replace(form)
	}
	values := strings.NewReplacer("{host}", html.EscapeString(p.host), "{server}", html.EscapeString(p.server), "{word}", html.EscapeString(p.word), "{issuer}", html.EscapeString(p.issuer))
	return values.Replace(text + `</html>`)
}

// show writes a page that says something.
func show(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, head+"<p>"+html.EscapeString(text)+"</p></html>") // the browser has gone if it fails
}

// ask writes the page that asks for a proof.
func (d *Door) ask(w http.ResponseWriter, r *http.Request, v *visit) {
	page := proofPage{host: d.Server.host(), server: v.Server, word: v.Word}
	if flow := d.issuer(v); flow != nil {
		page.issuer, page.ways = hostOf(flow.Issuer), append(page.ways, wayIssuer)
	}
	if d.hasCertificate(r) {
		page.ways = append(page.ways, wayCertificate)
	}
	if d.Tokens {
		page.ways = append(page.ways, wayToken)
	}
	_, _ = io.WriteString(w, page.html()) // the browser has gone if it fails
}
