package userlogin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
)

const (
	// maxForm bounds a form that is sent, in bytes: a token fits.
	maxForm = 64 << 10
	// stepTime bounds what one step asks of others.
	stepTime = 30 * time.Second
)

// A Door is a server as the pages see it: whose login can be made, and how its clients prove who
// they are.
type Door struct {
	Server *Server
	// Authenticate returns who has sent a request, as if it were one of a client. Its error has
	// a method StatusCode if the credential is not accepted, and has none if that can't be told.
	Authenticate func(*http.Request) (mcp.Principal, error)
	// ByCertificate reports whether the connection of a request may tell who has sent it.
	ByCertificate func(*http.Request) bool
	// Tokens says that clients have tokens, which their users can type in.
	Tokens bool
	// Issuers log in people to the endpoint itself, by their names.
	Issuers map[string]login.WebFlow
}

// Pages are what a browser comes to by a link.
type Pages struct {
	logins *Logins
	doors  map[string]*Door
}

// NewPages returns the pages of servers, by their names.
func NewPages(l *Logins, doors map[string]*Door) *Pages {
	for _, d := range doors {
		for name, flow := range d.Issuers {
			flow.Redirect, flow.Clients = l.redirect(), clients{l}
			d.Issuers[name] = flow
		}
	}
	return &Pages{l, doors}
}

// Paths returns the paths below which requests are for pages.
func (p *Pages) Paths() []string {
	paths := []string{Path}
	if u, err := url.Parse(p.logins.opts.Public); err == nil && u.Path != "" {
		paths = append(paths, u.Path+Path)
	}
	return paths
}

// ServeHTTP implements [http.Handler]. Only a POST has an effect, and only one of a form that was
// shown to the same browser.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w)
	ctx, cancel := context.WithTimeout(r.Context(), stepTime)
	defer cancel()
	r = r.WithContext(ctx)
	_, rest, _ := strings.Cut(r.URL.Path, Path)
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case !get && r.Method != http.MethodPost, !get && (Path+rest == returnPath || Path+rest == clientPath):
		w.Header().Set("Allow", "GET")
		show(w, http.StatusMethodNotAllowed, "This is not sent that way.")
	case Path+rest == clientPath:
		p.document(w)
	case Path+rest == returnPath:
		p.comeBack(w, r)
	case get:
		p.enter(w, r, rest)
	default:
		p.prove(w, r, rest)
	}
}

func (p *Pages) document(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(login.Document(p.logins.opts.Public+clientPath, p.logins.redirect())) // the client has gone if it fails
}

// door opens a link, and returns the server that it is for. It reports false if it has answered.
func (p *Pages) door(w http.ResponseWriter, text string) (*link, *Door, bool) {
	k, err := p.logins.openLink(text)
	if err != nil {
		show(w, http.StatusGone, "This link is not good, or not any more: it is for ten minutes. Have your program send its call again; it gets a new one.")
		return nil, nil, false
	}
	d := p.doors[k.Server]
	if d == nil {
		show(w, http.StatusNotFound, "The server that this link is for is not served any more.")
		return nil, nil, false
	}
	return k, d, true
}

// enter shows what a link is for, and the ways to prove who one is.
func (p *Pages) enter(w http.ResponseWriter, r *http.Request, text string) {
	k, d, ok := p.door(w, text)
	if !ok {
		return
	}
	v := newVisit(text, k)
	if err := p.logins.remember(w, v); err != nil {
		p.fail(w, d, "the visit can't begin", err)
		return
	}
	d.ask(w, r, v)
}

// prove finds out who the browser's user is, in the way that he has chosen.
func (p *Pages) prove(w http.ResponseWriter, r *http.Request, text string) {
	k, d, ok := p.door(w, text)
	if !ok {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	v, err := p.logins.recall(r, idOf(text))
	if err != nil || !p.isOwnForm(r) || !v.hasWord(r) || v.Server != k.Server || v.Principal != k.Principal {
		show(w, http.StatusForbidden, "This form was not shown to this browser, or too long ago. Open the link again.")
		return
	}
	switch way := r.PostFormValue("way"); {
	case way == wayToken && d.Tokens:
		p.admit(w, withToken(r, strings.TrimSpace(r.PostFormValue("token"))), v, d)
	case way == wayCertificate && d.hasCertificate(r):
		p.admit(w, withToken(r, ""), v, d)
	case way == wayIssuer && d.issuer(v) != nil:
		p.sendTo(w, r, v, d.issuer(v), atIssuer, d)
	default:
		show(w, http.StatusBadRequest, "This is no way to prove who you are here.")
	}
}

// isOwnForm reports whether browsers say that a form is one of these pages.
func (p *Pages) isOwnForm(r *http.Request) bool {
	u, err := url.Parse(p.logins.opts.Public)
	if err != nil {
		return false
	}
	origins, site := r.Header["Origin"], r.Header.Get("Sec-Fetch-Site")
	return len(origins) <= 1 && (len(origins) == 0 || origins[0] == u.Scheme+"://"+u.Host) && (site == "" || site == "same-origin")
}

// withToken returns a request as a client would send it, with a token or none.
func withToken(r *http.Request, token string) *http.Request {
	out := r.Clone(r.Context())
	out.URL.RawQuery, out.Body = "", http.NoBody
	out.Header.Del("Cookie")
	out.Header.Del("Authorization")
	if token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	return out
}

// admit goes on to the server's authorization server if a request is the principal's whom the link
// is for. Nobody else gets any further.
func (p *Pages) admit(w http.ResponseWriter, r *http.Request, v *visit, d *Door) {
	by, err := d.Authenticate(r)
	refusal := (interface{ StatusCode() int })(nil)
	switch {
	case errors.As(err, &refusal):
		p.refuse(w, r, v, "", "the credential is not accepted")
		show(w, http.StatusForbidden, "This is not accepted as a proof of who you are. Go back, and try again.")
	case err != nil:
		p.fail(w, d, "a proof can't be verified", err)
	case by != v.Principal || by == "" || by == mcp.Anonymous:
		p.refuse(w, r, v, by, "the link is another principal's")
		show(w, http.StatusForbidden, "This link is for somebody else. If a person or a program has sent it to you, it would have got the use of your account. Nothing was kept.")
	default:
		p.sendTo(w, r, v, &d.Server.opts.Flow, atServer, d)
	}
}

// refuse notes that somebody came who is not whom a link is for, and ends the visit.
func (p *Pages) refuse(w http.ResponseWriter, r *http.Request, v *visit, by mcp.Principal, why string) {
	p.logins.forget(w, v.ID)
	p.logins.opts.Logger.Warn("login refused: the browser's user is not the principal", "upstream", v.Server, "downstream", r.RemoteAddr, "reason", why)
	p.logins.opts.Noted(Event{What: "refused", Server: v.Server, Principal: v.Principal, By: by, Address: r.RemoteAddr, Why: why})
}

// sendTo sends the browser to an authorization server, from which it comes back for a stage.
func (p *Pages) sendTo(w http.ResponseWriter, r *http.Request, v *visit, flow *login.WebFlow, stage string, d *Door) {
	var more []string
	if stage == atServer {
		more = v.Scopes
	}
	with := *flow
	with.Document = p.logins.document()
	errand, at, err := with.Begin(r.Context(), v.state(), more)
	if err == nil {
		v.Stage, v.Errand, v.Ends = stage, errand, time.Now().Add(visitLife).Unix()
		err = p.logins.remember(w, v)
	}
	if err != nil {
		p.fail(w, d, "a login can't begin", err)
		return
	}
	http.Redirect(w, r, at, http.StatusSeeOther)
}

// comeBack takes the answer of an authorization server, in the browser that was sent there.
func (p *Pages) comeBack(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Referrer-Policy", "no-referrer") // since the URL has the code
	q := r.URL.Query()
	v, err := p.logins.recall(r, idOfState(q))
	if err != nil || v.Errand == nil || len(q["state"]) != 1 || q.Get("state") != v.Errand.State {
		show(w, http.StatusForbidden, "This is not the answer to a login that was begun in this browser, or it comes too late. Nothing was kept.")
		return
	}
	d := p.doors[v.Server]
	if d == nil {
		show(w, http.StatusNotFound, "The server that this login is for is not served any more.")
		return
	}
	flow := &d.Server.opts.Flow
	if v.Stage == atIssuer {
		flow = d.issuer(v)
	}
	if flow == nil || v.Stage == atPage {
		show(w, http.StatusForbidden, "This is not the answer to a login that was begun in this browser.")
		return
	}
	p.finish(w, r, v, d, flow)
}

// finish exchanges the code of an answer, and does what the stage is for.
func (p *Pages) finish(w http.ResponseWriter, r *http.Request, v *visit, d *Door, flow *login.WebFlow) {
	with := *flow
	with.Document = p.logins.document()
	got, err := with.Finish(r.Context(), v.Errand, r.URL.Query())
	switch refused := (*login.GrantError)(nil); {
	case errors.As(err, &refused) && refused.Status == 0: // by the person, or in front of him
		p.logins.forget(w, v.ID)
		show(w, http.StatusForbidden, "The login was refused. Nothing was kept; your program can send its call again.")
	case err != nil:
		p.fail(w, d, "a login has failed", err)
	case v.Stage == atIssuer:
		p.admit(w, withToken(r, got.Token.AccessToken), v, d)
	default:
		p.done(w, r, v, d, got)
	}
}

// done keeps the login.
func (p *Pages) done(w http.ResponseWriter, r *http.Request, v *visit, d *Door, got *login.Login) {
	p.logins.forget(w, v.ID)
	p.logins.opts.Secrets.Learn(got.Client.Secret)
	if err := d.Server.Keep(r.Context(), v.Principal, got); err != nil {
		p.fail(w, d, "a login can't be kept", err)
		return
	}
	p.logins.opts.Logger.Info("somebody has logged in", "upstream", v.Server, v.Principal.Attr(), "issuer", got.Issuer)
	p.logins.opts.Noted(Event{What: "login", Server: v.Server, Principal: v.Principal, Address: r.RemoteAddr})
	show(w, http.StatusOK, "You are logged in at "+d.Server.host()+", and can close this page. Your program goes on, or sends its call again.")
}

// fail says that something did not work that is not the browser's fault. The log has the reason.
func (p *Pages) fail(w http.ResponseWriter, d *Door, what string, err error) {
	p.logins.opts.Logger.Warn("login page: "+what, "upstream", d.Server.opts.Name, "err", err)
	show(w, http.StatusBadGateway, "That did not work: "+what+". The log of mcpbridge says why. Try again in a moment.")
}

// issuer returns what logs in the principal of a visit to the endpoint itself; nil if it is none
// of an issuer. Its name, which has no space, begins the principal.
func (d *Door) issuer(v *visit) *login.WebFlow {
	name, _, _ := strings.Cut(string(v.Principal), " ")
	flow, ok := d.Issuers[name]
	if !ok || name == string(v.Principal) {
		return nil
	}
	return &flow
}

// hasCertificate reports whether the connection of a request shows a certificate that counts.
func (d *Door) hasCertificate(r *http.Request) bool {
	return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && d.ByCertificate(withToken(r, ""))
}
