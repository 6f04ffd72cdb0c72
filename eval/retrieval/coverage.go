package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/testset"
)

// An Order is the order in which passages get their vectors.
type Order string

// The orders.
const (
	AtRandom  Order = "random" // pseudo-random, the same in each run
	FirstOnes Order = "first"  // in the order of the set
)

// A CoverageReport measures the default ranking of a set while only a part of its passages has
// vectors.
type CoverageReport struct {
	Set      string        `json:"set"`
	Passages int           `json:"passages"`
	Queries  int           `json:"queries"`
	Model    string        `json:"model"`
	Text     Row           `json:"text"` // the same ranking without vectors
	Rows     []CoverageRow `json:"coverage"`
}

// A CoverageRow is the default ranking with vectors for a share of the passages, compared with
// Text.
type CoverageRow struct {
	Share float64 `json:"share"` // in [0, 1]
	Order Order   `json:"order"`
	Row
}

// Coverage measures the default ranking of a set with vectors for the given shares of its passages,
// in both orders, and without vectors.
func Coverage(ctx context.Context, set testset.Set, parts Parts, shares []float64) (CoverageReport, error) {
	report := CoverageReport{Set: set.Name, Passages: len(set.Passages), Queries: len(set.Queries)}
	if parts.Embedder == nil {
		return report, fmt.Errorf("%s: vector coverage needs an encoder: %w", set.Name, assay.ErrInvalid)
	}
	report.Model = parts.Embedder.Model()
	measure := func(ranking Ranking, covered func(int) bool) (Row, error) {
		parts.Covered = covered
		o, err := Open(ctx, set, parts)
		if err != nil {
			return Row{}, err
		}
		row, err := o.Measure(ctx, ranking.Name, o.Retriever(ranking), assay.Query{Mode: ranking.Mode})
		return row, cmp.Or(err, o.Close())
	}
	full := Ranking{Graph: true, Rerank: true}
	text := full
	text.Mode, text.Name = assay.ModeText, "text +graph +rerank"
	var err error
	if report.Text, err = measure(text, func(int) bool { return false }); err != nil {
		return report, err
	}
	places := rand.New(rand.NewPCG(10, 50)).Perm(len(set.Passages))
	for _, order := range []Order{AtRandom, FirstOnes} {
		for _, share := range shares {
			n := int(share * float64(len(set.Passages)))
			full.Name = fmt.Sprintf("%.0f%% %s", 100*share, order)
			row, err := measure(full, func(i int) bool {
				if order == AtRandom {
					i = places[i]
				}
				return i < n
			})
			if err != nil {
				return report, err
			}
			d := Compare(row, report.Text)
			row.Against = &d
			report.Rows = append(report.Rows, CoverageRow{Share: share, Order: order, Row: row})
		}
	}
	return report, nil
}
