package ground_test

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

func TestVerifyRow(t *testing.T) {
	const text = "The Basic plan costs 12 euros a month and includes 5 GB of storage."
	columns := []string{"Plan", "Price", "Storage"}
	tests := []struct {
		name string
		row  ground.Row
		want assay.Verdict
	}{
		{"as the source says", ground.Row{columns, []string{"Basic plan", "12 euros a month", "5 GB"}, text}, assay.Supported},
		{"without a sentence", ground.Row{columns, []string{"Basic plan", "costs 12 euros a month", "includes 5 GB of storage"}, ""}, assay.Supported},
		{"another number in a cell", ground.Row{columns, []string{"Basic plan", "13 euros a month", "5 GB"}, text}, assay.Unsupported},
		{"another word in a cell", ground.Row{columns, []string{"Basic plan", "12 dollars a month", "5 GB"}, text}, assay.Unsupported},
		{"another name in a cell", ground.Row{columns, []string{"Premium plan", "12 euros a month", "5 GB"}, text}, assay.Unsupported},
		{"a sentence that is not said", ground.Row{columns, []string{"Basic plan", "12 euros a month", "5 GB"}, "The Basic plan is free of charge for students."}, assay.Unsupported},
		{"another number in the sentence", ground.Row{columns, []string{"Basic plan", "12 euros a month", "5 GB"}, "The Basic plan costs 13 euros a month and includes 5 GB of storage."}, assay.Contradicted},
	}
	for _, tt := range tests {
		j, err := ground.Local{}.VerifyRow(t.Context(), tt.row, []ground.Passage{{Quote: text, Context: text, Heading: []string{"Plans"}}})
		if err != nil || (j.Verdict == assay.Supported) != (tt.want == assay.Supported) {
			t.Errorf("%s: %s (%s), %v; want %s", tt.name, j.Verdict, j.Reason, err, tt.want)
		}
	}
	if j, err := (ground.Local{}).VerifyRow(t.Context(), tests[0].row, nil); err != nil || j.Verdict != assay.Unsupported {
		t.Errorf("nothing cited: %s, %v", j.Verdict, err)
	}
}
