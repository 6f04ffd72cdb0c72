package eval_test

import (
	"fmt"

	"github.com/assay-rag/assay/eval"
)

// Count how often each sub-question was searched.
func ExampleIterations() {
	fmt.Println(eval.Iterations([]string{"sub[0]/search[0]/search", "sub[0]/search[1]/search", "sub[1]/search[0]/search"}))
	// Output: 1.5
}
