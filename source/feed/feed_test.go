package feed

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
)

// A fake serves a feed and the pages of its entries.
type fake struct {
	*httptest.Server
	mu        sync.Mutex
	text      map[string]string // by name
	format    string
	unchanged int // requests answered with 304
	throttle  int
	after     time.Duration
	refuse    bool
}

func newFake(t *testing.T, format string) *fake {
	f := &fake{text: map[string]string{}, format: format}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.refuse:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case f.throttle > 0:
		f.throttle--
		w.Header().Set("Retry-After", strconv.Itoa(int(f.after.Seconds())))
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.URL.Path != "/feed":
		text, ok := f.text[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<p>page with %s", text)
		return
	}
	var entries strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.text)) {
		link := "/" + name
		switch f.format {
		case "rss":
			fmt.Fprintf(&entries, `<item><title>T</title><media:title xmlns:media="m">no</media:title><link>%s</link><description>%s</description></item>`, link, f.text[name])
		case "atom":
			fmt.Fprintf(&entries, `<entry><id>%s</id><title>T</title><link rel="self" href="/no"/><link href="%s"/><content type="html">%s</content></entry>`, name, link, f.text[name])
		default:
			fmt.Fprintf(&entries, `{"id":%q,"url":%q,"content_text":%q},`, name, link, f.text[name])
		}
	}
	body := map[string]string{
		"rss":  `<?xml version="1.0"?><rss version="2.0"><channel><title>Feed</title>%s</channel></rss>`,
		"atom": `<feed xmlns="http://www.w3.org/2005/Atom"><title>Feed</title>%s</feed>`,
		"json": `{"version":"https://jsonfeed.org/version/1.1","items":[%s]}`,
	}[f.format]
	body = fmt.Sprintf(body, strings.TrimSuffix(entries.String(), ","))
	etag := fmt.Sprintf("%q", fmt.Sprint(len(body), strings.Count(body, "o")))
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		f.unchanged++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	fmt.Fprint(w, body)
}

func (f *fake) set(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text[name] = text
	if text == "" {
		delete(f.text, name)
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"rss", "atom", "json"} {
		for _, content := range []string{"entry", "page"} {
			t.Run(format+" "+content, func(t *testing.T) {
				t.Parallel()
				sourcetest.Run(t, func(t *testing.T) sourcetest.World {
					f := newFake(t, format)
					w := sourcetest.World{
						Kind: Kind(),
						Config: source.Config{Target: f.URL + "/feed", HTTP: f.Client(), Options: map[string]string{"content": content},
							Credential: func(string) (string, error) { return "Bearer x", nil }},
						Put: f.set, Delete: func(name string) { f.set(name, "") },
						URI: func(name string) string { return f.URL + "/" + name },
						Throttle: func(n int, after time.Duration) {
							f.mu.Lock()
							defer f.mu.Unlock()
							f.throttle, f.after = n, after
						},
						Refuse: func() {
							f.mu.Lock()
							defer f.mu.Unlock()
							f.refuse = true
						},
					}
					if content == "page" {
						w.Vanish = w.Delete
					}
					return w
				})
			})
		}
	}
}

func TestConditional(t *testing.T) {
	t.Parallel()
	f := newFake(t, "rss")
	f.set("a", "words")
	options, err := Kind().Complete(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Kind().Open(t.Context(), source.Config{Target: f.URL + "/feed", Options: options, HTTP: f.Client()})
	if err != nil {
		t.Fatal(err)
	}
	cursor := ""
	for range 2 {
		for c, err := range s.Changes(t.Context(), cursor) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Cursor != "" {
				cursor = c.Cursor
			}
		}
	}
	if f.unchanged != 1 {
		t.Errorf("%d requests answered without content, want 1", f.unchanged)
	}
	for _, err := range s.Changes(t.Context(), "nonsense") {
		if !errors.Is(err, source.ErrCursor) {
			t.Errorf("Changes = %v", err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	base, err := url.Parse("https://example.com/blog/feed.xml")
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	for name, test := range map[string]struct {
		feed string
		want []entry
	}{
		"rss": {`<rss><channel><item><guid>g</guid><title>A &amp;amp; B</title><link> post </link><dc:creator xmlns:dc="dc">Ann</dc:creator>
			<pubDate>Mon, 3 Feb 2025 04:05:06 GMT</pubDate><description>short</description>
			<content:encoded xmlns:content="c"><![CDATA[<p>long</p>]]></content:encoded></item></channel></rss>`,
			[]entry{{id: "g", link: "https://example.com/blog/post", title: "A & B", content: "<p>long</p>", media: "text/html", author: "Ann", created: day, modified: day}}},
		"rdf": {`<rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/"><item><title>T</title><link>https://example.com/x</link><description>d</description></item></rdf:RDF>`,
			[]entry{{link: "https://example.com/x", title: "T", content: "d", media: "text/html"}}},
		"atom": {`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>i</id><title>T</title><link rel="alternate" href="/x"/><author><name>Ann</name></author>
			<published>2025-02-03T04:05:06Z</published><updated>2025-02-03T05:05:06+01:00</updated><content type="xhtml"><div>x</div></content></entry></feed>`,
			[]entry{{id: "i", link: "https://example.com/x", title: "T", content: "<div>x</div>", media: "text/html", author: "Ann", created: day, modified: day}}},
		"latin": {"<?xml version='1.0' encoding='iso-8859-1'?><rss><item><title>caf\xe9&nbsp;x</title></item></rss>",
			[]entry{{title: "café x", media: "text/html"}}},
		"json": {`{"version":"https://jsonfeed.org/version/1","items":[{"id":5,"url":"javascript:x","content_html":"<b>x</b>","authors":[{"name":"Ann"}],"date_published":"2025-02-03T04:05:06Z"}]}`,
			[]entry{{id: "5", content: "<b>x</b>", media: "text/html", author: "Ann", created: day, modified: day}}},
	} {
		got, err := parse([]byte(test.feed), base)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(entry{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, bad := range []string{"", "words", "<html><body>x</body></html>", "{}", "<rss><item>", strings.Repeat("<a>", 20000)} {
		if _, err := parse([]byte(bad), base); err == nil {
			t.Errorf("parse(%.20q) = nil, want an error", bad)
		}
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	for _, c := range []source.Config{
		{Target: "feed.xml", Options: map[string]string{"content": "entry"}},
		{Target: "https://u:p@example.com/feed", Options: map[string]string{"content": "entry"}},
		{Target: "https://example.com/feed", Options: map[string]string{"content": "all"}},
	} {
		if _, err := Kind().Open(t.Context(), c); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("Open(%q) = %v", c.Target, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`<rss><item><title>x</title><link>y</link></item></rss>`))
	f.Add([]byte(`{"version":"https://jsonfeed.org/version/1","items":[{"id":1}]}`))
	base := &url.URL{Scheme: "https", Host: "example.com", Path: "/"}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parse(data, base)
		if err != nil {
			return
		}
		for _, e := range entries {
			e.item(false)
		}
	})
}
