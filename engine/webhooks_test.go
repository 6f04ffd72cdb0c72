package engine

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/webhook"
)

// TestWebhooksInBackground delivers the act of a question in the background. A receiver that fails
// does not affect the question.
func TestWebhooksInBackground(t *testing.T) {
	t.Parallel()
	arrived := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		arrived <- r.Header.Get(webhook.HeaderID)
	}))
	defer receiver.Close()
	e, err := Open(t.Context(), Config{
		Dir:      t.TempDir(),
		Getenv:   func(string) string { return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },
		Webhooks: Webhooks{Client: receiver.Client(), Background: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"good": "/", "broken": "/broken"} {
		target := webhook.Target{URL: receiver.URL + path, Events: []string{"run.*"}, Form: webhook.Standard, Secrets: []string{"env:HOOK"}}
		if err := e.SetWebhook(t.Context(), assay.Local(), name, target, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.TestWebhook(t.Context(), "broken"); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("TestWebhook = %v", err)
	}
	if _, err := e.Answer(t.Context(), assay.Local(), Request{Question: "Who approves travel?"}); err != nil {
		t.Fatal(err)
	}
	if first, second := <-arrived, <-arrived; first == second { // run.begun and run.ended
		t.Errorf("two messages have the ID %s", first)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Engine{}).DeliverWebhooks(t.Context()); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("DeliverWebhooks without a client = %v", err)
	}
}
