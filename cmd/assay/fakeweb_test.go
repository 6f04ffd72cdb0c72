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
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/webfetch"
	"github.com/assay-rag/assay/provider/searxng/searxngtest"
)

// testPagesEnv names the local address from which pages may be read. Only the tests' own program
// reads the variable.
const testPagesEnv = "ASSAY_TEST_PAGES"

// testPages returns the page fetcher for the tests' program, which also permits the address of a
// test server. It returns nil if the variable is not set.
func testPages() *webfetch.Fetcher {
	at, err := netip.ParseAddrPort(os.Getenv(testPagesEnv))
	if err != nil {
		return nil
	}
	return webfetch.New(webfetch.Config{Guard: egress.New(egress.Config{Permit: func(a netip.AddrPort) bool { return a == at }})})
}

// startWeb implements the script command web. It starts a SearXNG server and a server for pages,
// and sets the variables that configure them. The search finds a page with the answer, one at a
// forbidden address and one that does not exist.
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
