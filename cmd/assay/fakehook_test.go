package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assay-rag/assay/webhook"
)

// hookSecret is the signing secret of the receiver of test scripts.
const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// startHook implements the script command hook. It starts a receiver of webhooks and sets HOOK_URL
// and HOOK_SECRET. The receiver accepts signed messages at /ok and messages for Slack at /slack,
// fails at /broken and answers 410 at /gone.
func startHook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: hook")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		case r.URL.Path == "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/gone":
			w.WriteHeader(http.StatusGone)
		case r.URL.Path == "/slack" && strings.Contains(string(body), `"blocks":[`):
		case webhook.Verify(r.Header, body, time.Now(), hookSecret) != nil:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	ts.Defer(s.Close)
	ts.Setenv("HOOK_URL", s.URL)
	ts.Setenv("HOOK_SECRET", hookSecret)
	ts.Setenv("SLACK_URL", s.URL+"/slack")
}
