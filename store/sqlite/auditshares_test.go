package sqlite

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// TestTamperedShare alters the row of a share without the log.
func TestTamperedShare(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ctx := t.Context()
	tenant, err := created(h.Store, ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	l, err := tenant.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := store.Share{Run: "run", ID: "a", Hash: "x", Created: time.Unix(1, 0), Expires: time.Unix(2, 0)}
	if err := tenant.Shares().Create(ctx, s, assay.Principal{}); err != nil {
		t.Fatal(err)
	}
	if found := foundBy(t, tenant.Audit()); found != "" {
		t.Fatal(found)
	}
	u, err := tenant.RunsUpdater(ctx)
	if err != nil {
		t.Fatal(err)
	}
	do := func(query string) {
		t.Helper()
		if err := u.Update(ctx, func(x relational.Tx) error { _, err := x.Exec(ctx, query); return err }); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ alter, back, want string }{
		{`UPDATE shares SET hash = 'y'`, `UPDATE shares SET hash = 'x'`, "it was altered"},
		{`UPDATE shares SET expires = expires + 1`, `UPDATE shares SET expires = expires - 1`, "it was altered"},
		{`UPDATE shares SET id = 'b'`, `UPDATE shares SET id = 'a'`, "the log does not have it"},
		{`DELETE FROM shares`, `INSERT INTO shares (run, id, hash, created, expires) SELECT number, 'a', 'x', 1000000000, 2000000000 FROM runs`, "it is missing"},
	} {
		do(test.alter)
		if found := foundBy(t, tenant.Audit()); !strings.Contains(found, test.want) {
			t.Errorf("%s: found %q", test.alter, found)
		}
		do(test.back)
	}
	if err := tenant.Shares().Revoke(ctx, "run", "a", assay.Principal{}); err != nil { // the harness checks the store too
		t.Fatal(err)
	}
}
