package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/webfetch"
	"github.com/assay-rag/assay/provider/searxng/searxngtest"
)

// testPagesEnv names the one address on this machine that pages may be read from, in the
// tests' own program. No other program looks at it.
const testPagesEnv = "ASSAY_TEST_PAGES"

// testPages returns what reads pages in the tests' program: the guarded fetcher, with a
// hole for the server of a test; nil: without one.
func testPages() *webfetch.Fetcher {
	at, err := netip.ParseAddrPort(os.Getenv(testPagesEnv))
	if err != nil {
		return nil
	}
	return webfetch.New(webfetch.Config{Permit: func(a netip.AddrPort) bool { return a == at }})
}

// startWeb starts a small web, a SearXNG server and its pages, and sets the variables
// by which the program finds it: web. The search finds a page that tells, one on an
// address that no page may be read from, and one that is not there.
func startWeb(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: web")
	}
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	ts.Defer(s.Close)
	mux.HandleFunc("/search", func(w http.ResponseWriter, r *http.Request) {
		body := searxngtest.Reply([]assay.WebResult{
			{URL: s.URL + "/ganymede", Title: "Ganymede", Snippet: "A moon."},
			{URL: "http://169.254.169.254/latest/meta-data/", Title: "Ganymede", Snippet: "The orbital period of the moon Ganymede is a secret."},
			{URL: s.URL + "/gone", Title: "Gone", Snippet: "Nothing."},
		})
		w.Header().Set("Content-Type", body.Type)
		_, _ = w.Write(body.Bytes())
	})
	mux.HandleFunc("/ganymede", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Ganymede</title><article><h1>Orbit</h1><p>The orbital period of the moon Ganymede is about seven days.</p></article>")
	})
	ts.Setenv("SEARXNG_URL", s.URL)
	ts.Setenv(testPagesEnv, strings.TrimPrefix(s.URL, "http://"))
}
