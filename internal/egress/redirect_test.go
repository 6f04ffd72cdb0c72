package egress_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay/internal/egress"
)

// TestRedirectWithoutCredentials checks that a redirect to another port or scheme of the same host
// does not carry credentials, which net/http would send.
func TestRedirectWithoutCredentials(t *testing.T) {
	t.Parallel()
	var got sync.Map
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store("other", r.Header.Get("Authorization")) }))
	t.Cleanup(other.Close)
	mux := http.NewServeMux()
	mux.Handle("/away", http.RedirectHandler(other.URL, http.StatusFound))
	mux.Handle("/near", http.RedirectHandler("/same", http.StatusFound))
	mux.HandleFunc("/same", func(_ http.ResponseWriter, r *http.Request) { got.Store("same", r.Header.Get("Authorization")) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	here, _ := egress.HostOf(server.URL)
	there, _ := egress.HostOf(other.URL)
	var guard *egress.Guard
	client := guard.Scope(egress.Scope{Purpose: egress.Source, Hosts: egress.List{here, there}, Private: true}).Client(time.Minute)
	for _, path := range []string{"/away", "/near"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer secret")
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	elsewhere, _ := got.Load("other")
	same, _ := got.Load("same")
	if elsewhere != "" || same != "Bearer secret" {
		t.Errorf("another origin got %q and the same one %q", elsewhere, same)
	}
}
