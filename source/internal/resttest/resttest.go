// Package resttest has the parts that fakes of services share: a server with throttling and refused
// credentials, and servers that are hostile.
package resttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
)

// A Service is a server that imitates a service.
type Service struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	throttle int
	after    time.Duration
	refused  bool
	requests int
}

// New starts a service. Requests whose Authorization is not the given value are answered with 401;
// open names the paths that need none.
func New(t *testing.T, authorization string, handler http.Handler, open ...string) *Service {
	s := &Service{t: t}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, path := range open {
			if strings.HasPrefix(r.URL.Path, path) {
				handler.ServeHTTP(w, r)
				return
			}
		}
		s.mu.Lock()
		s.requests++
		throttled, after, refused := s.throttle > 0, s.after, s.refused
		if throttled {
			s.throttle--
		}
		s.mu.Unlock()
		switch {
		case throttled:
			w.Header().Set("Retry-After", fmt.Sprint(int(after.Seconds())))
			w.WriteHeader(http.StatusTooManyRequests)
		case refused || r.Header.Get("Authorization") != authorization:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"message": "bad credentials `+r.Header.Get("Authorization")+`"}`)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// Throttle answers the next requests with 429.
func (s *Service) Throttle(requests int, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.throttle, s.after = requests, after
}

// Refuse answers all requests with 401.
func (s *Service) Refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
}

// Requests returns the number of requests.
func (s *Service) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// JSON writes a value.
func JSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

// An Object is a JSON object.
type Object = map[string]any

// Credentials returns a function for source.Config.
func Credentials(values map[string]string) func(string) (string, error) {
	return func(name string) (string, error) { return values[name], nil }
}

// Open opens a source with a fake clock.
func Open(t *testing.T, kind source.Kind, c source.Config) (source.Source, *sourcetest.Clock) {
	t.Helper()
	clock := sourcetest.NewClock()
	c.Now, c.Sleep = clock.Now, clock.Sleep
	options, err := kind.Complete(c.Options)
	if err != nil {
		t.Fatal(err)
	}
	c.Options = options
	s, err := kind.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, clock
}

// Swept is the result of a sweep or of changes, by URI.
type Swept struct {
	Items   map[string]source.Item
	Skips   map[string]*source.Skip
	Deleted map[string]bool
	Cursor  string
	Err     error
}

// Sweep reads a sweep.
func Sweep(ctx context.Context, s source.Source) Swept {
	out := Swept{Items: map[string]source.Item{}, Skips: map[string]*source.Skip{}}
	for item, err := range s.Sweep(ctx) {
		if skip, ok := source.AsSkip(err); ok {
			out.Skips[skip.URI] = skip
		} else if err != nil {
			out.Err = err
		} else {
			out.Items[item.URI] = item
		}
	}
	return out
}

// Changes reads changes.
func Changes(ctx context.Context, s source.Source, cursor string) Swept {
	out := Swept{Items: map[string]source.Item{}, Skips: map[string]*source.Skip{}, Deleted: map[string]bool{}}
	for c, err := range s.Changes(ctx, cursor) {
		if skip, ok := source.AsSkip(err); ok {
			out.Skips[skip.URI] = skip
			continue
		}
		if err != nil {
			out.Err = err
			continue
		}
		if c.Cursor != "" {
			out.Cursor = c.Cursor
		}
		switch {
		case c.Deleted:
			out.Deleted[c.Item.URI] = true
			delete(out.Items, c.Item.URI)
		case c.Item.URI != "":
			out.Items[c.Item.URI] = c.Item
		}
	}
	return out
}

// Fetch returns the content of an item as text.
func Fetch(t *testing.T, s source.Source, item source.Item) string {
	t.Helper()
	got, err := s.Fetch(t.Context(), item)
	if err != nil {
		t.Fatalf("Fetch(%s): %v", item.URI, err)
	}
	return string(got.Data)
}

// Hostile checks a kind against servers that answer wrongly. config returns the configuration for
// a server; token answers requests for access tokens and reports whether it did, and may be nil.
// secret must not occur in errors, and must not be sent to other hosts.
func Hostile(t *testing.T, kind source.Kind, secret string, config func(url string) source.Config, token func(w http.ResponseWriter, r *http.Request) bool) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), secret) {
				t.Errorf("another host got the secret in the header %s", name)
			}
		}
		JSON(w, Object{})
	}))
	t.Cleanup(elsewhere.Close)
	handlers := map[string]http.HandlerFunc{
		"not JSON":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>Sign in</html>") },
		"wrong JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `["a", 1, null]`) },
		"deep JSON": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat(`{"a":[`, 100_000))
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"results": [`)
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			block := []byte(strings.Repeat(" ", 1<<20))
			for r.Context().Err() == nil {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		},
		"redirects":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+"/", http.StatusFound) },
		"loops":       func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) },
		"unavailable": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"asks for years": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "99999999999999")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"forbidden": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"message": "no: `+r.Header.Get("Authorization")+`"}`)
		},
	}
	for what, handler := range handlers {
		t.Run(what, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if token == nil || !token(w, r) {
					handler(w, r)
				}
			}))
			t.Cleanup(server.Close)
			s, clock := Open(t, kind, config(server.URL))
			for name, err := range map[string]error{"Sweep": Sweep(t.Context(), s).Err, "Changes": Changes(t.Context(), s, "").Err} {
				if err == nil {
					t.Errorf("%s ends without an error", name)
					continue
				}
				known := errors.Is(err, assay.ErrUnavailable) || errors.Is(err, source.ErrCredentials)
				if !known || strings.Contains(err.Error(), secret) {
					t.Errorf("%s = %v, want a known kind without the secret", name, err)
				}
			}
			if clock.Slept() > time.Hour {
				t.Errorf("slept for %v", clock.Slept())
			}
		})
	}
	t.Run("slow", func(t *testing.T) { slow(t, kind, config, token) })
}

// slow checks that a body that does not end is given up when the context ends.
func slow(t *testing.T, kind source.Kind, config func(url string) source.Config, token func(w http.ResponseWriter, r *http.Request) bool) {
	reached := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token != nil && token(w, r) {
			return
		}
		_, _ = io.WriteString(w, "{")
		w.(http.Flusher).Flush()
		reached <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	s, _ := Open(t, kind, config(server.URL))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reached
		cancel()
	}()
	if err := Sweep(ctx, s).Err; !errors.Is(err, context.Canceled) {
		t.Errorf("Sweep = %v, want context.Canceled", err)
	}
}
