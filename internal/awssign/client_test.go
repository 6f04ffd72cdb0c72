package awssign_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/awssign"
)

func TestClient(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		io.WriteString(w, strings.Repeat(string(got), 2))
	}))
	defer s.Close()
	for _, test := range []struct {
		max   int64
		large bool
	}{{8, false}, {7, true}, {0, true}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Body = io.NopCloser(strings.NewReader("word"))
		res, err := awssign.Client{HTTP: s.Client(), MaxBytes: test.max}.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if _, large := errors.AsType[*awssign.TooLargeError](err); large != test.large || !large && string(got) != "wordword" {
			t.Errorf("with a limit of %d: %q, %v", test.max, got, err)
		}
	}
}
