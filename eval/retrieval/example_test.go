package retrieval_test

import (
	"fmt"

	"github.com/assay-rag/assay/eval/retrieval"
)

// Measure a ranking against the documents that are relevant.
func ExampleMeasure() {
	m := retrieval.Measure([]string{"travel.md", "leave.md", "history.md"}, map[string]int{"leave.md": 1})
	fmt.Printf("nDCG %.2f, MRR %.2f, recall %.2f\n", m.NDCG10, m.MRR10, m.Recall10)
	// Output:
	// nDCG 0.63, MRR 0.50, recall 1.00
}
