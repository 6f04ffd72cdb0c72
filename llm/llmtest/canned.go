package llmtest

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A Canned server answers each request with the next of its replies and records the requests. A
// request after the last reply fails the test. Requests must be sequential.
type Canned struct {
	Status  int    // 0 means 200
	Type    string // Content-Type
	Replies []string
	Repeat  bool // repeat the last reply for all further requests

	Methods, Paths, Bodies []string // of the requests; paths include queries
}

// Start starts the server and returns its address. The server stops when the test ends.
func (c *Canned) Start(t testing.TB) string {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.Methods, c.Paths, c.Bodies = append(c.Methods, r.Method), append(c.Paths, r.URL.RequestURI()), append(c.Bodies, string(body))
		w.Header().Set("Content-Type", c.Type)
		w.WriteHeader(cmp.Or(c.Status, http.StatusOK))
		if len(c.Replies) == 0 {
			t.Error("one request too many")
			return
		}
		fmt.Fprint(w, c.Replies[0])
		if !c.Repeat || len(c.Replies) > 1 {
			c.Replies = c.Replies[1:]
		}
	}))
	t.Cleanup(h.Close)
	return h.URL
}

// Requests returns the requests received, each as method, path and body.
func (c *Canned) Requests() []string {
	var all []string
	for i, body := range c.Bodies {
		all = append(all, c.Methods[i]+" "+c.Paths[i]+" "+strings.TrimSpace(body))
	}
	return all
}
