package webhook

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// TestVerifier delivers messages and has the verifier of Standard Webhooks' JavaScript library check
// them, and altered copies of them. scripts/standardwebhooks runs it.
func TestVerifier(t *testing.T) {
	program := os.Getenv("ASSAY_STANDARDWEBHOOKS")
	if program == "" {
		t.Skip("ASSAY_STANDARDWEBHOOKS is not set: run scripts/standardwebhooks go test -run Verifier ./webhook")
	}
	type check struct {
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	var mu sync.Mutex // the targets are called at the same time
	var got []check
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		headers := map[string]string{}
		for _, name := range []string{HeaderID, HeaderTimestamp, HeaderSignature} {
			headers[name] = r.Header.Get(name)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, check{secretA, headers, string(body)})
	}))
	defer s.Close()
	tenant := openTenant(t, t.TempDir())
	for name, secrets := range map[string][]string{"one": {"env:HOOK"}, "rotating": {"env:OLD", "env:HOOK"}} {
		target := Target{URL: s.URL, Events: []string{"*"}, Form: Standard, Secrets: secrets, Link: "https://assay.example.com/ä"}
		if err := Add(t.Context(), tenant, name, target, assay.Local(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := tenant.Audit().Append(t.Context(), store.Act{Kind: "review.needed", Subject: "run1"}); err != nil {
		t.Fatal(err)
	}
	d := &Deliverer{Tenant: tenant, Client: &http.Client{}, Credential: Resolve(func(name string) string { return environment[name] })}
	if r, err := d.Deliver(t.Context()); err != nil || r.Delivered < 2 || len(got) != r.Delivered {
		t.Fatalf("Deliver = %+v, %v", r, err)
	}
	var want []string
	for range got {
		want = append(want, "ok")
	}
	last := got[len(got)-1]
	bad := func(c check) {
		got, want = append(got, c), append(want, "refused")
	}
	bad(check{secretB, signedAt(t, time.Now(), last.Body, secretA), last.Body})
	bad(check{secretA, signedAt(t, time.Now().Add(-Tolerance-time.Minute), last.Body, secretA), last.Body})
	bad(check{secretA, signedAt(t, time.Now(), last.Body, secretA), last.Body + " "})
	var in bytes.Buffer
	for i, c := range got {
		if err := json.NewEncoder(&in).Encode(c); err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		for name, value := range c.Headers {
			h.Set(name, value)
		}
		if err := Verify(h, []byte(c.Body), time.Now(), c.Secret); (err == nil) != (want[i] == "ok") {
			t.Errorf("message %d: Verify = %v, want %s", i, err, want[i])
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", program)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d results of %d messages: %s", len(lines), len(want), out)
	}
	for i, line := range lines {
		if (line == "ok") != (want[i] == "ok") {
			t.Errorf("message %d: the library says %q, want %s", i, line, want[i])
		}
	}
}

func signedAt(t *testing.T, at time.Time, body string, secrets ...string) map[string]string {
	h := signed(t, "msg_x", at, body, secrets...)
	return map[string]string{HeaderID: h.Get(HeaderID), HeaderTimestamp: h.Get(HeaderTimestamp), HeaderSignature: h.Get(HeaderSignature)}
}
