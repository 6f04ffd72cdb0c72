package quality

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/internal/index"
)

// worse reports whether an engine is worse by differences of a figure: their 95 % interval lies
// below -0.005, or their mean below -0.01.
func worse(d stat.Interval) bool { return d.High < -0.005 || d.Mean < -0.01 }

// judge compares the figures of an engine with those of package index. Lines describe the
// differences, and problems those that are too large.
func (e Engine) judge(own, got *outcome) (lines, problems []string) {
	for i, ranking := range rankings {
		cells := []string{e.Name, ranking.name}
		for j, metric := range metrics {
			before, after := own.figures[i][j], got.figures[i][j]
			differences := make([]float64, len(before))
			for k := range differences {
				differences[k] = after[k] - before[k]
			}
			d := stat.Bootstrap(differences)
			cell := fmt.Sprintf("%s %.4f, own %.4f, %+.4f [%+.4f, %+.4f]", metric.name, stat.Mean(after), stat.Mean(before), d.Mean, d.Low, d.High)
			cells = append(cells, cell)
			if worse(d) {
				problems = append(problems, fmt.Sprintf("%s: %s", ranking.name, cell))
			}
		}
		lines = append(lines, strings.Join(cells, " | "))
	}
	overlap := got.meanOverlap()
	if overlap < e.Overlap {
		problems = append(problems, fmt.Sprintf("overlap@10 of vector searches is %.4f, want %.4f", overlap, e.Overlap))
	}
	same, order := 0, 0
	for i := range own.text {
		if slices.EqualFunc(own.text[i].Hits, got.text[i].Hits, sameHit) {
			same++
		}
		if slices.EqualFunc(own.text[i].Hits, got.text[i].Hits, func(a, b index.Hit) bool { return a.Chunk == b.Chunk }) {
			order++
		}
	}
	lines = append(lines, fmt.Sprintf("%s | overlap@10 %.4f, own %.4f | text searches with equal hits in equal order %d, and equal scores %d, of %d",
		e.Name, overlap, own.meanOverlap(), order, same, len(own.text)))
	if e.SameText && same < len(own.text) {
		problems = append(problems, fmt.Sprintf("%d of %d text searches differ", len(own.text)-same, len(own.text)))
	}
	return lines, problems
}

// sameHit reports whether two hits of text searches are equal in every bit of their scores.
func sameHit(a, b index.Hit) bool {
	return a.Chunk == b.Chunk && a.Document == b.Document && a.Version == b.Version && a.BM25 == b.BM25 && slices.Equal(a.Matched, b.Matched)
}
