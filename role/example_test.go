package role_test

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
)

// trusting is a verifier that supports every claim.
type trusting struct{}

func (trusting) Verify(_ context.Context, _ role.Caller, claims []role.Claim) ([]ground.Judgement, error) {
	judged := make([]ground.Judgement, len(claims))
	for i := range judged {
		judged[i] = ground.Judgement{Verdict: assay.Supported, Score: 1}
	}
	return judged, nil
}

// A guarded verifier is checked by a second one, which may only refuse.
func ExampleGuarded() {
	source := []ground.Passage{{Quote: "Meals are paid at 40 euros a day.", Context: "Meals are paid at 40 euros a day."}}
	v := role.Guarded(trusting{}, ground.Local{})
	judged, err := v.Verify(context.Background(), nil, []role.Claim{
		{Text: "Meals are paid at 40 euros a day.", Cited: source},
		{Text: "Meals are paid at 50 euros a day.", Cited: source},
	})
	for _, j := range judged {
		fmt.Printf("%s %q %v\n", j.Verdict, j.Reason, err)
	}
	// Output:
	// supported "" <nil>
	// unsupported "the number 50 euros is not in the source" <nil>
}
