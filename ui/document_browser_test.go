package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/browsertest"
)

// TestChromiumDocument follows a citation into a document with pictures of its pages, and walks through
// a long one.
func TestChromiumDocument(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	house := x.putDocument("ann", "house.pdf", samplePDF("Hestia"), `{"acl": ["group:staff"]}`)
	at := strings.Index(house.Text, "The boiler of house 2")
	var long strings.Builder
	long.WriteString("# دليل الطاقة und Wärme\n\n")
	for i := range 900 {
		fmt.Fprintf(&long, "## Abschnitt %d\n\nDie Donaudampfschifffahrtsgesellschaftskapitänsmütze%s liegt im Regal %d.\n\n", i, strings.Repeat("x", 200), i)
	}
	book := x.putDocument("ann", "book.md", long.String(), "")
	both(t, func(t *testing.T, o browsertest.Options) {
		p := x.browser(t, "ann", o)
		p.Expect("LazyLoadImageIssue") // the browser's advice, although the pictures have a size
		p.Go(x.url + documentPath(house.ID, house.Version, at, at+21))
		if got := p.Text("#span"); got != "The boiler of house 2" {
			t.Errorf("the quoted words are %q", got)
		}
		p.Wait(`figure[data-page="2"] img`)
		if !o.NoScript {
			p.Wait(`figure.here[data-page="2"]`)
			p.Axe(t)
		}
		p.Go(x.url + "/documents/" + book.ID)
		p.Click("a[rel=next]")
		p.WaitText("#text", "part 2 of")
		if o.NoScript {
			return
		}
		p.Axe(t)
		for _, width := range []int{320, 2560} {
			p.Resize(width, 800)
			var overflow int
			if p.Eval("document.documentElement.scrollWidth - document.documentElement.clientWidth", &overflow); overflow > 0 {
				t.Errorf("the page is %d wider than %d", overflow, width)
			}
		}
	})
}

// TestChromiumDocumentForeign shows that others get neither text nor picture.
func TestChromiumDocumentForeign(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	house := x.putDocument("ann", "house.pdf", samplePDF("Hestia"), `{"acl": ["group:staff"]}`)
	for _, user := range []string{"bob", "zed"} {
		p := x.browser(t, user, browsertest.Options{})
		p.Expect("status of 404")
		p.Go(x.url + "/documents/" + house.ID)
		p.WaitText("h1", "Not found")
	}
}
