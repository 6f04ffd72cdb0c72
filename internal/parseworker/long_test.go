package parseworker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdftest"
	"github.com/assay-rag/assay/parse"
)

// manual returns a PDF of pages of prose with headings and tables.
func manual(pages int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the valve pressure of a pump is set before its first start and checked after each service by an engineer who signs the sheet")
	line := func(n int) string {
		var out []string
		for range n {
			out = append(out, words[random.IntN(len(words))])
		}
		return strings.Join(out, " ")
	}
	f := pdftest.File{Compress: true}
	for i := range pages {
		page := f.Page(595, 842)
		page.Text(72, 80, 16, true, fmt.Sprintf("%d. The %s", i+1, line(3)))
		for k := range 30 {
			page.Text(72, 120+15*float64(k), 10, false, line(14))
		}
		page.Table(72, 600, 400, [][]string{{"part", "value"}, {line(1), fmt.Sprint(i)}, {line(1), fmt.Sprint(i * 7)}})
	}
	return f.Bytes()
}

// TestManual parses a long PDF, whose pages together take longer than the time for one document.
func TestManual(t *testing.T) {
	if os.Getenv("ASSAY_LONG") == "" {
		t.Skip("it takes minutes; ASSAY_LONG=1 runs it")
	}
	p := testPool(t, "parse")
	data := manual(2000)
	began := time.Now()
	if err := p.Walk(t.Context(), parse.Input{Name: "a.pdf", Data: data}, func(d parse.Parsed) error {
		for _, page := range d.Document.Pages {
			if page.Outcome != assay.PageText {
				t.Errorf("page %d: %s %s", page.Number, page.Outcome, page.Detail)
			}
		}
		t.Logf("%d MiB, %d pages, %d blocks, %v", len(data)>>20, len(d.Document.Pages), len(d.Document.Blocks), time.Since(began))
		return d.Err
	}); err != nil {
		t.Error(err)
	}
	t.Logf("peak %d MiB", p.Peak()>>20)
}
