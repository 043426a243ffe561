package browser

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/dashboard"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// arrives waits for something of a page that the browser may still be on its way to.
func (b *tab) arrives(expression string) {
	b.Helper()
	testwait.Until(b, expression, func() bool {
		there, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		return err == nil && there
	})
}

// A dashboard in an application has its name and colours, sends people to the application's sign-in, and takes the
// token that they come back with; a link from elsewhere brings none.
func TestEmbedded(t *testing.T) {
	s, err := scene.Start(t.Context(), testserver.Redis(t))
	must.No(t, err)
	t.Cleanup(s.Stop)
	secret, entry, err := httpapi.NewToken("ann", httpapi.Viewer, time.Time{})
	must.No(t, err)
	tokens, err := httpapi.ParseTokens("[" + entry + "]")
	must.No(t, err)
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(s.Client), Authorize: tokens.Authorize,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(api.Close)
	page, err := dashboard.New(dashboard.Config{API: api, Title: "Acme <Jobs>", SignInURL: "/login?to={return}",
		Colors: map[string]string{"main": "#123456"}})
	must.No(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", page)
	good := false
	mux.HandleFunc("/login", func(w http.ResponseWriter, q *http.Request) {
		to := q.URL.Query().Get("to")
		if good {
			to += "#token=" + secret
		}
		http.Redirect(w, q, to, http.StatusSeeOther)
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)

	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.do(chromedp.Navigate(web.URL + "/#token=" + secret)) // nobody here asked for it
	b.arrives(`document.body?.innerText.includes("You are not signed in.")`)
	b.want(`location.hash + sessionStorage.getItem("flowfabric.token")`, "#/null")
	good = true
	b.press("Sign in")
	b.arrives(`document.querySelector("header .who")?.innerText.startsWith("ann")`)
	b.want(`document.querySelector(".brand").innerText + "|" + document.title`, "Acme <Jobs>|Overview · Acme <Jobs>")
	b.want(`location.hash.includes("token")`, "false")
	b.want(`getComputedStyle(document.querySelector(".brand")).getPropertyValue("--main")`, "#123456")
	b.press("Sign out")
	b.arrives(`document.body?.innerText.includes("You are not signed in.")`)
	b.quiet(asked401)
}
