package ground

import (
	"testing"

	"github.com/assay-rag/assay"
)

// What is denied together is not denied each for itself.
func TestDeniedTogether(t *testing.T) {
	for _, test := range []struct {
		source, claim string
		supported     bool
	}{
		{"No plan costs 5 euros and includes 10 GB.", "No plan costs 5 euros.", false},
		{"No plan costs 5 euros and includes 10 GB.", "No plan costs 5 euros and includes 10 GB.", true},
		{"Nobody reads the log and answers the client.", "Nobody reads the log.", false},
		{"Not every user reads the log and answers the client.", "Not every user reads the log.", false},
		{"Do not drink and drive.", "Do not drink.", false},
		{"A client cannot read and write at once.", "A client cannot read at once.", false},
		{"No refund is paid, and the fee is kept.", "No refund is paid.", true},
		{"No refund is paid and the fee is kept.", "No refund is paid.", true},
		{"The warranty lasts two years and does not cover damage by water.", "The warranty lasts two years.", true},
	} {
		j, err := Learned{}.Verify(t.Context(), test.claim, cite(test.source))
		if err != nil {
			t.Fatal(err)
		}
		if (j.Verdict == assay.Supported) != test.supported {
			t.Errorf("%q by %q: %s (%.2f, %s)", test.claim, test.source, j.Verdict, j.Score, j.Reason)
		}
	}
}
