// Package eval is the root of the packages that measure assay. A newcomer reads them in this order:
//
//   - [github.com/assay-rag/assay/eval/testset] reads labelled questions: retrieval sets in the BEIR
//     layout, and files of questions for whole answers.
//   - [github.com/assay-rag/assay/eval/metric] defines the measures and
//     [github.com/assay-rag/assay/eval/stat] their statistics.
//   - [github.com/assay-rag/assay/eval/retrieval] opens a retrieval set and measures rankings.
//   - [github.com/assay-rag/assay/eval/strategies] measures the strategies, beside a naive baseline.
//   - [github.com/assay-rag/assay/eval/answers] asks whole questions, finds the step at which each was
//     lost, and compares systems; [github.com/assay-rag/assay/eval/judge] judges what words cannot
//     and [github.com/assay-rag/assay/eval/report] writes pages and CSV.
//   - [github.com/assay-rag/assay/eval/abstention] removes the answers of questions from their
//     documents and counts the false answers.
//   - [github.com/assay-rag/assay/eval/claims] measures verifiers on labelled claims, some of them made
//     by [github.com/assay-rag/assay/eval/mutate].
//   - [github.com/assay-rag/assay/eval/tune] chooses settings, and
//     [github.com/assay-rag/assay/eval/starter] writes a first set of questions.
//   - [github.com/assay-rag/assay/eval/scripted] has stand-ins for language models.
//
// The programs eval/handwritten and eval/codeset measure and make sets of this repository. Weights are
// fitted by train/fit. The package itself has only what the others share.
package eval

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A Progress reports how far an evaluation has come.
type Progress struct {
	Set       string
	What      string // "encode", "index", or the ranking that is being measured
	Done, All int    // passages or queries
	Before    int    // part of Done that was done before this evaluation began
	Elapsed   time.Duration
}

// ProgressTo returns a function that prints a line for each stage and then every ten seconds.
func ProgressTo(w io.Writer) func(Progress) {
	var last time.Time
	stage := ""
	return func(p Progress) {
		now := p.Set + ": " + p.What
		if now == stage && time.Since(last) < 10*time.Second {
			return
		}
		stage, last = now, time.Now()
		fmt.Fprintf(w, "%s, %d of %d\n", now, p.Done, p.All)
	}
}

// InTurn returns a function that reports one more of all items as done. It is safe for concurrent
// use. The calls of progress are serialised; progress may be nil.
func InTurn(all int, progress func(done, all int)) func() {
	var mu sync.Mutex
	done := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if done++; progress != nil {
			progress(done, all)
		}
	}
}

// Iterations returns the mean number of searches of a sub-question, from the paths of the search
// steps of one run. Searches for the question itself count as those of one more sub-question. It
// returns 0 if there are none.
func Iterations(searches []string) float64 {
	parts := map[string]bool{}
	for _, path := range searches {
		part := ""
		for i, name := range strings.Split(path, "/") {
			if strings.HasPrefix(name, "sub[") {
				part = strings.Join(strings.Split(path, "/")[:i+1], "/")
			}
		}
		parts[part] = true
	}
	if len(parts) == 0 {
		return 0
	}
	return float64(len(searches)) / float64(len(parts))
}
