package opensearch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assay-rag/assay"
)

// fake returns a connection to a server that answers as OpenSearch may. A handler gets the number of
// the request, from 1, and its body. Requests for the state of the server are answered here.
func fake(t *testing.T, handle func(w http.ResponseWriter, n int, body string)) *Cluster {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/_")) {
			fmt.Fprint(w, `{"name": "n", "cluster_name": "c", "cluster_uuid": "u", "version": {"distribution": "opensearch", "number": "2.19.1"}, "tagline": "The OpenSearch Project: https://opensearch.org/"}`)
			return
		}
		handle(w, int(n.Add(1)), string(body))
	}))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := Connect(Config{Addresses: []string{server.URL}, Transport: transport, Username: "u", Password: "hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConnectInvalid(t *testing.T) {
	transport := http.DefaultTransport
	for name, c := range map[string]Config{
		"no address":   {Transport: transport},
		"no transport": {Addresses: []string{"http://localhost"}},
		"no scheme":    {Addresses: []string{"localhost:9200"}, Transport: transport},
		"file":         {Addresses: []string{"file:///etc"}, Transport: transport},
		"credentials":  {Addresses: []string{"https://me:hunter2@localhost"}, Transport: transport},
		"prefix":       {Addresses: []string{"http://localhost"}, Transport: transport, Prefix: "a/_all"},
		"wildcard":     {Addresses: []string{"http://localhost"}, Transport: transport, Prefix: "*"},
	} {
		_, err := Connect(c)
		if !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want ErrInvalid without a password", name, err)
		}
	}
}

// items returns the answer to a bulk request, with a status for each of its rows.
func items(body string, statuses ...int) string {
	var list []string
	failed := false
	for i, line := range strings.Split(strings.TrimSpace(body), "\n") {
		if i%2 == 1 {
			continue
		}
		_, id, _ := strings.Cut(line, `"_id":"`)
		id, _, _ = strings.Cut(id, `"`)
		status := statuses[min(i/2, len(statuses)-1)]
		failed = failed || status >= 300
		list = append(list, fmt.Sprintf(`{"index": {"_id": %q, "status": %d, "error": {"type": "mapper_parsing_exception", "reason": "no"}}}`, id, status))
	}
	return fmt.Sprintf(`{"errors": %v, "items": [%s]}`, failed, strings.Join(list, ","))
}

// send sends rows with these IDs of chunks.
func send(ctx context.Context, c *Cluster, chunks ...string) error {
	b := bulk{cluster: c, index: "i", nonce: "n"}
	for _, chunk := range chunks {
		if err := b.add(ctx, row{Kind: kindText, Chunk: chunk}); err != nil {
			return err
		}
	}
	return b.send(ctx)
}

// TestBulkItems checks that rows which OpenSearch has no room for are sent again, and only these.
func TestBulkItems(t *testing.T) {
	var sent []int
	c := fake(t, func(w http.ResponseWriter, n int, body string) {
		sent = append(sent, strings.Count(body, "\n")/2)
		switch n {
		case 1:
			fmt.Fprint(w, items(body, 201, 429, 201, 503))
		case 2:
			fmt.Fprint(w, items(body, 429, 200))
		default:
			fmt.Fprint(w, items(body, 201))
		}
	})
	if err := send(t.Context(), c, "a", "b", "c", "d"); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(sent); got != "[4 2 1]" {
		t.Errorf("sent %s rows, want [4 2 1]", got)
	}
}

// TestBulkRefused checks that no failure of a row is taken for success.
func TestBulkRefused(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(body string) string
		kind   error
	}{
		"one row":        {func(body string) string { return items(body, 201, 400) }, nil},
		"fewer rows":     {func(string) string { return `{"errors": false, "items": []}` }, assay.ErrUnavailable},
		"other rows":     {func(body string) string { return strings.Replace(items(body, 201), `"_id": "n`, `"_id": "m`, 1) }, assay.ErrUnavailable},
		"another action": {func(body string) string { return strings.ReplaceAll(items(body, 201), `"index":`, `"delete":`) }, assay.ErrUnavailable},
		"cut":            {func(body string) string { s := items(body, 201); return s[:len(s)/2] }, assay.ErrUnavailable},
		"no JSON":        {func(string) string { return "<html>" }, assay.ErrUnavailable},
	} {
		c := fake(t, func(w http.ResponseWriter, _ int, body string) { fmt.Fprint(w, test.answer(body)) })
		err := send(t.Context(), c, "a", "b")
		if err == nil || test.kind != nil && !errors.Is(err, test.kind) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want one of kind %v", name, err, test.kind)
		}
	}
}

// TestBusy checks that a request is repeated while the server has no room for it, until the context
// ends.
func TestBusy(t *testing.T) {
	busy := func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error": {"type": "rejected_execution_exception", "reason": "queue is full"}, "status": 429}`)
	}
	var requests atomic.Int64
	c := fake(t, func(w http.ResponseWriter, n int, body string) {
		if requests.Store(int64(n)); n < 4 {
			busy(w)
			return
		}
		fmt.Fprint(w, items(body, 201))
	})
	if err := send(t.Context(), c, "a"); err != nil || requests.Load() != 4 {
		t.Errorf("%v after %d requests, want success after 4", err, requests.Load())
	}

	ctx, cancel := context.WithCancel(t.Context())
	c = fake(t, func(w http.ResponseWriter, n int, _ string) {
		if n == 3 {
			cancel()
		}
		busy(w)
	})
	if err := send(ctx, c, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while the server is busy: %v, want context.Canceled", err)
	}
}

// TestLostNode repeats a search that met a node which is gone, and no write, which may have reached it.
func TestLostNode(t *testing.T) {
	lost := func(times int) *Cluster {
		return fake(t, func(w http.ResponseWriter, n int, _ string) {
			if n <= times {
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprint(w, `{"error": {"root_cause": [{"type": "node_not_connected_exception", "reason": "[n2] is gone"}], "type": "exception", "reason": "x"}}`)
				return
			}
			fmt.Fprint(w, `{"took": 1}`)
		})
	}
	var answer struct{ Took int }
	if err := lost(2).do(t.Context(), http.MethodPost, "/i/_search?x=y", object{}, &answer); err != nil || answer.Took != 1 {
		t.Errorf("a search: %v, %+v", err, answer)
	}
	if err := lost(nodeRetries+1).do(t.Context(), http.MethodGet, "/i/_doc/1", nil, nil); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("a node that stays away: %v", err)
	}
	if err := lost(1).do(t.Context(), http.MethodPut, "/i/_doc/1", object{}, nil); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("a write: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for status, kind := range map[int]error{302: assay.ErrUnavailable, 401: assay.ErrUnavailable, 403: assay.ErrUnavailable, 500: assay.ErrUnavailable} {
		c := fake(t, func(w http.ResponseWriter, _ int, _ string) {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"error": {"type": "security_exception", "reason": "no permissions for u with hunter2, Basic dTpodW50ZXIy"}}`)
		})
		if _, err := c.readState(t.Context(), "i", nil); !errors.Is(err, kind) || status != 302 && !strings.Contains(err.Error(), "no permissions") || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "dTpod") {
			t.Errorf("status %d: error %v, want %v", status, err, kind)
		}
	}
	c := fake(t, func(w http.ResponseWriter, _ int, _ string) {
		fmt.Fprint(w, `{"found": true, "_source": {"other": 1}}`)
	})
	if _, err := c.readState(t.Context(), "i", nil); !errors.Is(err, assay.ErrForeign) {
		t.Errorf("a state document of another program: %v, want ErrForeign", err)
	}
}
