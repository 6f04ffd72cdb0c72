package engine

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
)

// BenchmarkQuestion measures a question of four model calls, which take no time here, without limits
// and with limits of everything.
func BenchmarkQuestion(b *testing.B) {
	for _, test := range []struct {
		name   string
		limits limit.Limits
	}{
		{"without limits", nil},
		{"with limits", limit.Limits{
			limit.RequestsPerDay: limit.Most, limit.Runs: limit.Most, limit.CallsPerDay: limit.Most, limit.TokensPerMonth: limit.Most,
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			e, err := Open(b.Context(), Config{Dir: b.TempDir(), Models: served(handbook.models()), NoCache: true})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			if _, err := e.Ingest(b.Context(), IngestRequest{Paths: []string{"testdata/handbook"}}); err != nil {
				b.Fatal(err)
			}
			if test.limits != nil {
				for _, subject := range []string{limit.Tenant, limit.Users} {
					if err := e.SetLimits(b.Context(), assay.Local(), subject, test.limits, ""); err != nil {
						b.Fatal(err)
					}
				}
			}
			for b.Loop() {
				if _, err := e.Answer(b.Context(), assay.Local(), Request{Question: someQuestion, Strategy: "corrective"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
