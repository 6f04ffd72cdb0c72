package server

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// FuzzDecode decodes requests for every route. A request that a route does not take is the client's
// mistake, whatever it has.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(1), "x", "limit=3&after=x", "application/json", []byte(`{"question": "Who?"}`))
	f.Add(uint8(2), "%00", "limit=%zz;&=&x", "application/json; charset=utf-16", []byte(`{"question": {}, "question": 1e999}`))
	f.Add(uint8(3), "..", "a=b&a=c", "text/plain", []byte("\xff\xfe{"))
	f.Add(uint8(4), strings.Repeat("x", 300), "", "multipart/form-data; boundary=x", []byte("--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--x--"))
	f.Add(uint8(0), "", "", "", []byte(strings.Repeat("[", 20_000)))
	s := newServing(f, nil, nil)
	routes := Routes()
	f.Fuzz(func(t *testing.T, n uint8, id, query, media string, body []byte) {
		route := routes[int(n)%len(routes)]
		r := httptest.NewRequest(route.Method, "http://localhost/", bytes.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", media)
		for _, name := range []string{"Last-Event-ID", "Idempotency-Key", "If-Match", "If-None-Match", "Range"} {
			r.Header.Set(name, id)
		}
		for _, part := range strings.Split(route.Path, "/") {
			if name, ok := strings.CutPrefix(part, "{"); ok {
				r.SetPathValue(strings.TrimSuffix(strings.TrimSuffix(name, "}"), "..."), id)
			}
		}
		w := httptest.NewRecorder()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		x := &exchange{server: s.Server, route: route, w: w, r: r.WithContext(ctx), cancel: cancel}
		x.r.Body = http.MaxBytesReader(w, x.r.Body, route.BodyLimit())
		if err := x.decode(reflect.New(route.In).Interface()); err != nil {
			if status := x.problem(err).Status; status < 400 || status >= 500 {
				t.Errorf("%s: %v is status %d", route.Name, err, status)
			}
		}
	})
}

// FuzzRequest serves whole requests, as they arrive, to routes that need a credential which they do
// not have, so that nothing is asked of the engine.
func FuzzRequest(f *testing.F) {
	for i, text := range malformed {
		f.Add([]byte(strings.Replace(text, "%s", strings.Repeat("x", i), 1)))
	}
	s := newServing(f, func(c *Config) { c.Authenticate, c.Hosts = refuseAll, []string{"localhost"} }, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 && !isProbe(r) {
			t.Errorf("the status is %d for %q", w.Code, data)
		}
		if strings.Contains(s.log.String(), "panic") {
			t.Errorf("a panic: %s", s.log)
		}
		s.log.mu.Lock()
		s.log.text.Reset()
		s.log.mu.Unlock()
	})
}
