package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestReviewDoc checks that docs/review.md explains every flag of a policy.
func TestReviewDoc(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/review.md")
	if err != nil {
		t.Fatal(err)
	}
	newApp().policySetCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "reason" || f.Name == "topic-threshold" {
			return
		}
		if !strings.Contains(string(data), "`--"+f.Name) {
			t.Errorf("docs/review.md does not mention --%s", f.Name)
		}
	})
}
