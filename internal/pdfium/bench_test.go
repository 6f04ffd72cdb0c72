package pdfium_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay/internal/pdfium"
)

func BenchmarkPage(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(testData(b), "data/parsing/pdf/sources/redp5110_sampled.pdf"))
	if err != nil {
		b.Fatal(err)
	}
	doc := open(b, data)
	pages := 0
	for b.Loop() {
		for i := range doc.PageCount() {
			if _, err := doc.Page(b.Context(), i); err != nil {
				b.Fatal(err)
			}
			pages++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(pages), "µs/page")
}

func BenchmarkOpen(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(testData(b), "data/parsing/pdf/sources/picture_classification.pdf"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		doc, err := pdfium.Open(b.Context(), data)
		if err != nil {
			b.Fatal(err)
		}
		doc.Close()
	}
}
