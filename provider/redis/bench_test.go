package redis

import (
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// BenchmarkTake takes from two buckets: one request to a server on this machine.
func BenchmarkTake(b *testing.B) {
	s, tenant := open(b), rand.Text()
	bounds := []limit.Bound{
		{Subject: limit.Tenant, Measure: limit.RequestsPerSecond, Most: limit.Most}, {Subject: limit.User("ann"), Measure: limit.RequestsPerMinute, Most: limit.Most},
	}
	for b.Loop() {
		if err := s.Take(b.Context(), tenant, bounds); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVectors looks up a batch of 32 vectors of 1,536 dimensions.
func BenchmarkVectors(b *testing.B) {
	s := open(b)
	e := s.Vectors(rand.Text(), &llmtest.Hashing{Dimensions: 1536})
	var texts []string
	for i := range 32 {
		texts = append(texts, fmt.Sprint("passage ", i))
	}
	for b.Loop() {
		if _, err := e.Embed(b.Context(), llm.Passage, texts); err != nil {
			b.Fatal(err)
		}
	}
}
