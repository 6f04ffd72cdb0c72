package egress_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/internal/egress"
)

// TestEachClient checks that a client reaches private hosts that requests name, as far as the list
// admits them, and follows no redirect.
func TestEachClient(t *testing.T) {
	t.Parallel()
	reached := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached += r.URL.Path
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	t.Cleanup(server.Close)
	host, _ := egress.HostOf(server.URL)
	for name, test := range map[string]struct {
		config  egress.Config
		address string
		ok      bool
	}{
		"no list":  {egress.Config{}, server.URL + "/a", true},
		"listed":   {egress.Config{Allow: egress.List{host}}, server.URL + "/b", true},
		"offline":  {egress.Config{Offline: true}, server.URL + "/c", true},
		"unlisted": {egress.Config{Allow: egress.MustRules("hooks.example")}, server.URL + "/no", false},
		"away":     {egress.Config{Offline: true}, "https://hooks.example/no", false},
		"metadata": {egress.Config{}, "http://169.254.169.254/no", false},
		"a user":   {egress.Config{}, strings.Replace(server.URL, "://", "://u:p@", 1) + "/no", false},
		"nothing":  {egress.Config{}, "http:///no", false},
	} {
		client := egress.New(test.config).Scope(egress.Scope{Purpose: egress.Webhook, Private: true}).EachClient(time.Minute)
		r, err := client.Get(test.address)
		if err == nil {
			r.Body.Close()
		}
		client.CloseIdleConnections()
		if test.ok && (err != nil || r.StatusCode != http.StatusFound) || !test.ok && name != "nothing" && !errors.Is(err, egress.ErrRefused) || !test.ok && err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if strings.Contains(reached, "no") || strings.Contains(reached, "elsewhere") || len(reached) != len("/a/b/c") {
		t.Errorf("reached %s", reached)
	}
}
