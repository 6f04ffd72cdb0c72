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

// A Canned server answers each request with the next of its replies, and keeps what it
// was asked. One request too many is an error of the test. Requests come one after the
// other.
type Canned struct {
	Status  int    // 0: 200
	Type    string // Content-Type
	Replies []string
	Repeat  bool // the last reply is that to all further requests

	Methods, Paths, Bodies []string // what it was asked; paths with their queries
}

// Start starts the server, which ends with the test, and returns its address.
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

// Requests returns what it was asked: method, path and body.
func (c *Canned) Requests() []string {
	var all []string
	for i, body := range c.Bodies {
		all = append(all, c.Methods[i]+" "+c.Paths[i]+" "+strings.TrimSpace(body))
	}
	return all
}
