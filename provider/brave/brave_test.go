package brave_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/brave"
	"github.com/assay-rag/assay/provider/brave/bravetest"
)

func TestContract(t *testing.T) { llmtest.TestWebWire(t, bravetest.Search()) }

// TestFailures checks that the wait is read from the rate limit headers, and the kind from the
// error code if the status is ambiguous.
func TestFailures(t *testing.T) {
	tests := []struct {
		name, left, until, code string
		status                  int
		kind                    llm.ErrorKind
		wait                    time.Duration
	}{
		{"the second", "0, 14000", "1, 1419704", "RATE_LIMITED", 429, llm.RateLimited, time.Second},
		{"the month", "1, 0", "1, 1419704", "RATE_LIMITED", 429, llm.RateLimited, 24 * time.Hour},
		{"nothing said", "", "", "RATE_LIMITED", 429, llm.RateLimited, 0},
		{"nonsense", "0, x", "soon", "RATE_LIMITED", 429, llm.RateLimited, 0},
		{"below nothing", "-1", "-7", "RATE_LIMITED", 429, llm.RateLimited, 0},
		{"a bad token", "", "", "SUBSCRIPTION_TOKEN_INVALID", 422, llm.BadKey, 0},
		{"no quota", "", "", "QUOTA_LIMITED", 429, llm.NoQuota, 0},
		{"a bad query", "", "", "VALIDATION", 422, llm.BadRequest, 0},
	}
	for _, test := range tests {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-RateLimit-Remaining", test.left)
			w.Header().Set("X-RateLimit-Reset", test.until)
			w.WriteHeader(test.status)
			fmt.Fprintf(w, `{"type":"ErrorResponse","error":{"code":%q,"detail":"as it is"}}`, test.code)
		}))
		s, err := brave.New(brave.Config{BaseURL: h.URL, Key: secret.New("a-key-of-this-test")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.SearchWeb(t.Context(), "leave", 5)
		e, _ := errors.AsType[*llm.Error](err)
		if e == nil || e.Kind != test.kind || e.RetryAfter != test.wait || e.Message != "as it is" {
			t.Errorf("%s: %v", test.name, err)
		}
		h.Close()
	}
}
