package s3

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
)

// A service is an S3 server in this process that can be made to refuse requests.
type service struct {
	t      *testing.T
	server *httptest.Server
	bucket *bucket

	mu       sync.Mutex
	throttle int
	after    time.Duration
	refuse   bool
	lists    int
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t}
	inner := handler(t)
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.refused(w, r) {
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	opened, err := Kind().Open(t.Context(), s.config(t, "s3://docs/team"))
	if err != nil {
		t.Fatal(err)
	}
	s.bucket = opened.(*bucket)
	if _, err := s.bucket.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &s.bucket.name}); err != nil {
		t.Fatal(err)
	}
	return s
}

// handler returns an empty S3 server in memory or, if ASSAY_TEST_S3 is the address of a moto_server,
// that server after a reset. Tests then run with -parallel 1.
func handler(t *testing.T) http.Handler {
	t.Helper()
	address := os.Getenv("ASSAY_TEST_S3")
	if address == "" {
		return gofakes3.New(s3mem.New()).Server()
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(address+"/moto-api/reset", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}
}

func (s *service) refused(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Query().Has("list-type") {
		s.lists++
	}
	status, code := 0, ""
	switch {
	case r.Method == http.MethodPut || r.Method == http.MethodDelete:
	case s.refuse:
		status, code = http.StatusForbidden, "InvalidAccessKeyId"
	case s.throttle > 0:
		s.throttle--
		status, code = http.StatusServiceUnavailable, "SlowDown"
		w.Header().Set("Retry-After", strconv.Itoa(int(s.after.Seconds())))
	}
	if status == 0 {
		return false
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>no</Message></Error>`, code)
	return true
}

func (s *service) config(t *testing.T, target string) source.Config {
	t.Helper()
	options, err := Kind().Complete(map[string]string{"endpoint": s.server.URL, "path-style": "true", "page-size": "2"})
	if err != nil {
		t.Fatal(err)
	}
	return source.Config{
		Target: target, Options: options, HTTP: s.server.Client(),
		Credential: func(name string) (string, error) { return "key", nil },
	}
}

func (s *service) put(key, text string) {
	s.t.Helper()
	_, err := s.bucket.client.PutObject(s.t.Context(), &s3.PutObjectInput{
		Bucket: &s.bucket.name, Key: &key, Body: strings.NewReader(text), Metadata: map[string]string{"author": "Ann"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *service) remove(key string) {
	s.t.Helper()
	if _, err := s.bucket.client.DeleteObject(s.t.Context(), &s3.DeleteObjectInput{Bucket: &s.bucket.name, Key: &key}); err != nil {
		s.t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.World {
		s := newService(t)
		key := func(name string) string { return "team/" + name + ".txt" }
		s.put("other/x.txt", "outside the prefix")
		s.put("team/", "")
		return sourcetest.World{
			Kind: Kind(), Config: s.config(t, "s3://docs/team"),
			Put:    func(name, text string) { s.put(key(name), text) },
			Delete: func(name string) { s.remove(key(name)) },
			URI:    func(name string) string { return "s3://docs/" + key(name) },
			SetACL: func(name, user string) { s.put(key(name)+".metadata.json", `{"acl":["user:`+user+`"]}`) },
			Vanish: func(name string) { s.remove(key(name)) },
			Throttle: func(n int, after time.Duration) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.throttle, s.after = n, after
			},
			Refuse: func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.refuse = true
			},
		}
	})
}

func TestSidecars(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for key, text := range map[string]string{
		"team/a":                       "a",
		"team/a.b.txt":                 "b",
		"team/a.b.txt.metadata.json":   `{"title":"Bee"}`,
		"team/a.metadata.json":         `{"acl":["group:hr"]}`,
		"team/sub/c.txt":               "c",
		"team/sub/c.txt.metadata.json": `{`,
	} {
		s.put(key, text)
	}
	var got []string
	for item, err := range s.bucket.Sweep(t.Context()) {
		if skip, ok := source.AsSkip(err); ok {
			got = append(got, skip.URI+" "+string(skip.Reason))
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, item.URI+" "+strings.Join(item.ACL.Allow, ",")+item.Metadata[assay.MetaTitle].String)
		content, err := s.bucket.Fetch(t.Context(), item)
		if err != nil || content.Metadata[assay.MetaAuthor].String != "Ann" {
			t.Errorf("Fetch = %+v, %v", content, err)
		}
	}
	want := []string{"s3://docs/team/a group:hr", "s3://docs/team/a.b.txt Bee", "s3://docs/team/sub/c.txt bad_sidecar"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("Sweep = %q, want %q", got, want)
	}
	if s.lists != 3 {
		t.Errorf("%d listing requests of two objects each, want 3", s.lists)
	}
}

// TestListing checks listings of services that differ from Amazon's, or are hostile. No listing that
// may be incomplete, or hide a sidecar, ends without an error.
func TestListing(t *testing.T) {
	t.Parallel()
	const more = "<IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>"
	for name, test := range map[string]struct {
		pages []string // repeated at the end
		want  string   // keys
		fails bool
	}{
		"in order":           {[]string{"a b" + more, "c"}, "a b c", false},
		"unordered":          {[]string{"b a"}, "", true},
		"sidecar after page": {[]string{"a b" + more, "a.metadata.json"}, "a", true},
		"the same page":      {[]string{"a b" + more}, "a", true},
		"twice":              {[]string{"a a"}, "", true},
		"no token":           {[]string{"a<IsTruncated>true</IsTruncated>"}, "a", true},
		"empty pages":        {[]string{more}, "", true},
		"like a part":        {[]string{"a.zip a.zip%21/b a.zip%2521/b"}, "a.zip a.zip!/b a.zip%21/b", false},
		"encoded":            {[]string{"a%01b a%2Bb+c"}, "a\x01b a+b c", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var served atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page := test.pages[min(int(served.Add(1)), len(test.pages))-1]
				if r.URL.Query().Get("encoding-type") != "url" {
					page = "\x01"
				}
				keys, rest, cut := strings.Cut(page, "<")
				io.WriteString(w, "<ListBucketResult><EncodingType>url</EncodingType>")
				for _, key := range strings.Fields(keys) {
					fmt.Fprintf(w, "<Contents><Key>%s</Key><ETag>x</ETag><Size>1</Size></Contents>", key)
				}
				if cut {
					io.WriteString(w, "<"+rest)
				}
				io.WriteString(w, "</ListBucketResult>")
			}))
			t.Cleanup(server.Close)
			c := (&service{server: server}).config(t, "s3://docs")
			b, err := Kind().Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			uris := map[string]bool{}
			var last error
			for item, err := range b.Sweep(t.Context()) {
				if last = err; err == nil {
					keys = append(keys, item.Ref)
					if uris[item.URI] || strings.Contains(item.URI, assay.PartSeparator) {
						t.Errorf("%s is no URI of its own", item.URI)
					}
					uris[item.URI] = true
				}
			}
			if test.fails != errors.Is(last, assay.ErrUnavailable) || !test.fails && strings.Join(keys, " ") != test.want {
				t.Errorf("Sweep = %q, %v; want %q", keys, last, test.want)
			}
		})
	}
}

// TestRedirect checks that a redirect does not carry the session token to another host.
func TestRedirect(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("request with the headers %v", r.Header)
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	b, err := Kind().Open(t.Context(), (&service{server: server}).config(t, "s3://docs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range b.Sweep(t.Context()) {
		if !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("Sweep = %v", err)
		}
	}
	if _, err := b.Fetch(t.Context(), source.Item{URI: "s3://docs/a", Ref: "a"}); err == nil {
		t.Error("Fetch followed the redirect")
	}
}

func TestNoBucket(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b, err := Kind().Open(t.Context(), s.config(t, "s3://none"))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range b.Sweep(t.Context()) {
		if !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("Sweep of a bucket that does not exist = %v", err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.put("team/a.txt", strings.Repeat("x", 100))
	s.bucket.config.MaxBytes = 99
	_, err := s.bucket.Fetch(t.Context(), source.Item{URI: "s3://docs/team/a.txt", Ref: "team/a.txt"})
	if skip, ok := source.AsSkip(err); !ok || skip.Reason != source.TooLarge {
		t.Errorf("Fetch = %v", err)
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, target := range []string{"docs", "s3://", "s3:///x", "https://docs", "s3://key:secret@docs"} {
		if _, err := Kind().Open(t.Context(), s.config(t, target)); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("Open(%q) = %v", target, err)
		}
	}
}
