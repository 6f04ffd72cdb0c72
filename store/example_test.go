package store_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// Open a tenant, store a document and read what has changed.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "store")
	check(err)
	defer os.RemoveAll(dir)

	var s store.Store
	s, err = sqlite.Open(ctx, dir)
	check(err)
	defer s.Close()
	check(s.CreateTenant(ctx, "acme", store.Act{}))
	tenant, err := s.Tenant(ctx, "acme")
	check(err)
	defer tenant.Close()

	w, err := tenant.Writer(ctx)
	check(err)
	text := "Five days of leave may be carried over."
	sequence, err := w.Put(ctx, store.Entry{Document: assay.Document{
		ID: assay.DocumentID("handbook", "leave.md"), Collection: "handbook", URI: "leave.md",
		Version: assay.DocumentVersion(text, nil, "example"), Text: text,
	}})
	check(err)
	check(w.Close())

	for change, err := range tenant.Content().Changes(ctx, 0) {
		check(err)
		fmt.Println(change.Sequence == sequence, change.Document.URI, change.Document.Text)
	}
	names, err := s.Tenants(ctx)
	fmt.Println(names, err)
	// Output:
	// true leave.md Five days of leave may be carried over.
	// [acme] <nil>
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
