package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/philippgille/chromem-go"
)

// A chromemIndex holds the corpus's vectors in chromem-go, in memory. Its filters compare strings
// for equality, so each share has its own key.
type chromemIndex struct{ collection *chromem.Collection }

func buildChromem(ctx context.Context, c *corpus, v *vectorSet) (*chromemIndex, error) {
	collection, err := chromem.NewDB().CreateCollection("bench", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("chromem: %w", err)
	}
	for d := range c.documents() {
		keys := make(map[string]string)
		for _, below := range shares {
			if share(d) < below {
				keys[shareKey(below)] = "yes"
			}
		}
		for i := c.first[d]; i < c.first[d+1]; i++ {
			document := chromem.Document{ID: strconv.Itoa(int(i)), Metadata: keys, Embedding: v.row(int(i))}
			if err := collection.AddDocument(ctx, document); err != nil {
				return nil, fmt.Errorf("chromem: %w", err)
			}
		}
	}
	return &chromemIndex{collection}, nil
}

func shareKey(below float64) string { return fmt.Sprintf("under %g", below) }

func (x *chromemIndex) nearest(ctx context.Context, q []float32, below float64, limit int) (answer, error) {
	var where map[string]string
	if below < 1 {
		where = map[string]string{shareKey(below): "yes"}
	}
	found, err := x.collection.QueryEmbedding(ctx, q, min(limit, x.collection.Count()), where, nil)
	if err != nil {
		return nil, fmt.Errorf("chromem: %w", err)
	}
	return func() []int {
		var chunks []int
		for _, r := range found {
			if n, err := strconv.Atoi(r.ID); err == nil {
				chunks = append(chunks, n)
			}
		}
		return chunks
	}, nil
}
