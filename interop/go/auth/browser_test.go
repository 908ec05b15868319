package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// redirect is where clients have users sent back to. Nobody listens there.
const redirect = "http://127.0.0.1:19191/callback"

// A browser follows authorization URLs, submits the login forms that it is shown as they
// are filled in, and stops where the user is sent back to the client. With User,
// oidc-provider logs that one in.
type browser struct {
	*httptest.Server // answers GET /USER?url=… as interop/remote wants it
	visits           atomic.Int64
}

func newBrowser(t testing.TB) *browser {
	t.Helper()
	b := new(browser)
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.Close)
	return b
}

// as returns the address of the browser in which a user is logged in.
func (b *browser) as(user string) string { return b.URL + "/" + user }

func (b *browser) serve(w http.ResponseWriter, r *http.Request) {
	b.visits.Add(1)
	back, err := follow(r.URL.Query().Get("url"), strings.Trim(r.URL.Path, "/"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	values := make(map[string]string)
	for name := range back.Query() {
		values[name] = back.Query().Get(name)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(values) // the client gave up
}

// follow takes an authorization URL to its end, and returns where the user is sent back to.
func follow(authorize, user string) (back *url.URL, err error) {
	at, err := url.Parse(authorize)
	if err != nil {
		return nil, err
	}
	to := at.Query().Get("redirect_uri")
	if to == "" {
		return nil, fmt.Errorf("the authorization URL %s has no redirect_uri", authorize)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	tour := &tour{user: user, http: &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
	req, err := http.NewRequest(http.MethodGet, authorize, nil)
	for range 12 {
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(req.URL.String(), to) {
			return req.URL, nil
		}
		req, err = tour.step(req)
	}
	return nil, errors.New("the authorization server doesn't send the user back")
}

type tour struct {
	user string
	http *http.Client
}

// step makes a request and returns the next one.
func (t *tour) step(req *http.Request) (*http.Request, error) {
	req.Header.Set("X-User", t.user)
	if t.user == "nobody" {
		req.Header.Set("X-Consent", "deny")
	}
	res, err := t.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if next, err := res.Location(); err == nil {
		return http.NewRequest(http.MethodGet, next.String(), nil)
	}
	page, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	return submit(req, res.StatusCode, string(page))
}

var (
	formTag  = regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)"`)
	inputTag = regexp.MustCompile(`(?s)<input[^>]*name="([^"]*)"[^>]*value="([^"]*)"`)
)

// submit sends the form of a page.
func submit(on *http.Request, status int, page string) (*http.Request, error) {
	form := formTag.FindStringSubmatch(page)
	if form == nil {
		return nil, fmt.Errorf("%s answers %d and no form: %s", on.URL, status, page)
	}
	action, err := on.URL.Parse(html.UnescapeString(form[1]))
	if err != nil {
		return nil, err
	}
	values := make(url.Values)
	for _, in := range inputTag.FindAllStringSubmatch(page, -1) {
		values.Set(in[1], html.UnescapeString(in[2]))
	}
	req, err := http.NewRequest(http.MethodPost, action.String(), strings.NewReader(values.Encode()))
	if err == nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req, err
}

// browse is what the browser of a person does, in a process of its own: it follows an
// authorization URL, and goes where it is sent back to.
func browse(authorize, user string) error {
	back, err := follow(authorize, user)
	if err != nil {
		return err
	}
	res, err := http.Get(back.String())
	if err != nil {
		return err
	}
	return res.Body.Close()
}
