package page

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The link that mcpbridge admin prints opens the page without a token, once.
func TestLinkOpensThePage(t *testing.T) {
	w := newWorld(t)
	cmd := exec.Command(programs.Bridge, "admin", "--admin", strings.TrimPrefix(w.admin, "http://"), "--token", token)
	out, err := cmd.Output()
	link := strings.TrimSpace(string(out))
	if err != nil || !strings.HasPrefix(link, w.admin+"/login#") {
		t.Fatalf("mcpbridge admin printed %q, %v", link, err)
	}
	b := newBrowser(t)
	b.do(chromedp.Navigate(link), chromedp.WaitVisible("#views a"))
	b.sees("legacy", "modern")
	b.do(chromedp.Click("#logout"), chromedp.WaitVisible("#token"), chromedp.Navigate("about:blank"), chromedp.Navigate(link), chromedp.WaitVisible("#token"))
	b.sees("this link was used before")
	if views := eval[int](b, `document.querySelectorAll('#views a').length`); views != 0 {
		t.Errorf("a link that was used opens a page with %d views", views)
	}
}
