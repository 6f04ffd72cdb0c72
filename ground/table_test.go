package ground_test

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// A row that is a part of a row of the source's table is supported, and cites that row with
// its heads; a cell of another row, or under another head, is not.
func TestVerifyTableRow(t *testing.T) {
	const table = "These are the plans.\n\nPlan | Price per month | Storage | Support\nBasic | 5 euros | 10 GB | e-mail\nPro | 12 euros | 100 GB | phone\nTeam | 30 euros | 1 TB | phone, on site\n\nPrices are without tax."
	tests := []struct {
		name string
		row  ground.Row
		want bool
	}{
		{"two columns", ground.Row{Columns: []string{"Plan", "Storage"}, Cells: []string{"Team", "1 TB"}, Sentence: "Team: 1 TB"}, true},
		{"with a sentence", ground.Row{Columns: []string{"Plan", "Storage"}, Cells: []string{"Basic", "10 GB"}, Sentence: "The Basic plan has 10 GB of storage."}, true},
		{"another order, a shorter head", ground.Row{Columns: []string{"Plan", "Storage", "Price"}, Cells: []string{"Pro", "100 GB", "12 euros"}}, true},
		{"a unit in the head", ground.Row{Columns: []string{"Plan", "Price per month in euros"}, Cells: []string{"Pro", "12"}}, true},
		{"no name for the names", ground.Row{Columns: []string{"Tier", "Storage"}, Cells: []string{"Pro", "100 GB"}}, true},
		{"a cell of another row", ground.Row{Columns: []string{"Plan", "Storage"}, Cells: []string{"Team", "100 GB"}, Sentence: "Team: 100 GB"}, false},
		{"under another head", ground.Row{Columns: []string{"Plan", "Support"}, Cells: []string{"Team", "1 TB"}, Sentence: "Team: 1 TB"}, false},
		{"a head that the source has not", ground.Row{Columns: []string{"Plan", "Users"}, Cells: []string{"Team", "30 euros"}, Sentence: "Team: 30 euros"}, false},
		{"a part of a cell", ground.Row{Columns: []string{"Plan", "Support"}, Cells: []string{"Team", "phone"}, Sentence: "Team: phone"}, false},
		{"the sentence says more", ground.Row{Columns: []string{"Plan", "Storage"}, Cells: []string{"Team", "1 TB"}, Sentence: "The Team plan has 1 TB of encrypted storage."}, false},
		{"the sentence denies", ground.Row{Columns: []string{"Plan", "Storage"}, Cells: []string{"Team", "1 TB"}, Sentence: "The Team plan does not have 1 TB of storage."}, false},
		{"the sentence bounds", ground.Row{Columns: []string{"Plan", "Storage"}, Cells: []string{"Team", "1 TB"}, Sentence: "The Team plan has at least 1 TB of storage."}, false},
		{"no such row", ground.Row{Columns: []string{"Plan", "Storage"}, Cells: []string{"Gold", "1 TB"}, Sentence: "Gold: 1 TB"}, false},
	}
	for _, tt := range tests {
		cited := []ground.Passage{{Quote: table, Context: table, Heading: []string{"Falcon gateway", "Plans"}}}
		for _, v := range []ground.RowVerifier{ground.Local{}, ground.Learned{}} {
			j, err := v.VerifyRow(t.Context(), tt.row, cited)
			if err != nil || (j.Verdict == assay.Supported) != tt.want {
				t.Errorf("%s: %T says %s (%s), %v; want supported %v", tt.name, v, j.Verdict, j.Reason, err, tt.want)
			}
			if tt.name == "two columns" && (len(j.Spans) != 2 || table[j.Spans[0].Start:j.Spans[0].End] != "Plan | Price per month | Storage | Support" || table[j.Spans[1].Start:j.Spans[1].End] != "Team | 30 euros | 1 TB | phone, on site") {
				t.Errorf("%s: spans %v", tt.name, j.Spans)
			}
		}
	}
}

// A sentence that says of a row what its cells are is supported; one that takes a cell from
// another row, or under another head, or says more, is not.
func TestVerifyOfTable(t *testing.T) {
	const table = "Plan | Price per month | Storage | Support\nBasic | 5 euros | 10 GB | e-mail\nPro | 12 euros | 100 GB | phone\nPro Max | 30 euros | 1 TB | phone, on site"
	for claim, want := range map[string]bool{
		"The Pro plan costs 12 euros per month.":              true,
		"The Pro plan has 100 GB of storage.":                 true,
		"The price of the Basic plan is 5 euros per month.":   true,
		"Basic offers 10 GB of storage and e-mail support.":   true,
		"The Pro Max plan has 1 TB of storage.":               true,
		"The Pro plan costs 5 euros per month.":               false,
		"The Pro plan costs 12 euros per year.":               false,
		"The Pro plan costs 100 GB.":                          false,
		"The Pro plan costs 100 euros.":                       false,
		"The Pro plan has 12 euros of storage.":               false,
		"The Pro plan has 1 TB of storage.":                   false,
		"The Pro Max plan has 100 GB of storage.":             false,
		"The Pro plan does not cost 12 euros per month.":      false,
		"The Pro plan costs at least 12 euros per month.":     false,
		"Only the Pro plan costs 12 euros per month.":         false,
		"The Pro plan may cost 12 euros per month.":           false,
		"The Pro plan costs 12 euros per month without tax.":  false,
		"The Pro plan is cheaper than 12 euros per month.":    false,
		"The Gold plan costs 12 euros per month.":             false,
		"Does the Pro plan cost 12 euros per month?":          false,
		"The Pro and Basic plans cost 12 euros per month.":    false,
		"The Pro plan had 100 GB of storage until last year.": false,
		"It costs 12 euros per month.":                        false,
	} {
		j, err := ground.Local{}.Verify(t.Context(), claim, []ground.Passage{{Quote: table, Context: table, Heading: []string{"Falcon gateway", "Plans"}}})
		if err != nil || (j.Verdict == assay.Supported) != want {
			t.Errorf("%q is %s (%s), %v; want supported %v", claim, j.Verdict, j.Reason, err, want)
		}
	}
}
