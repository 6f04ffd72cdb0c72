package sqlite

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/internal/relational"
)

// TestOffersAreBounded checks that only the offers of the latest runs are kept.
func TestOffersAreBounded(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, t.TempDir(), Option{func(o *relational.Options) { o.MaxOffers = 3 }})
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := created(s, ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	for i := range 6 {
		id := fmt.Sprint("run", i)
		l, err := tenant.Runs().Create(ctx, assay.Run{ID: id, Question: "?"})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Finish(ctx, assay.RunDone, &assay.Answer{}, ""); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{0, 1, 2, 3, 5, 4} {
		if err := tenant.Runs().Offer(ctx, fmt.Sprint("run", i), fmt.Sprint("key", i%2)); err != nil {
			t.Fatal(err)
		}
	}
	var kept []string
	for _, key := range []string{"key0", "key1"} {
		offers, err := tenant.Runs().Offers(ctx, key, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range offers {
			kept = append(kept, o.Run)
		}
	}
	if diff := cmp.Diff([]string{"run4", "run5", "run3"}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}
