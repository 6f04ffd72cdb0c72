package audit_test

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay/audit"
)

// A checkpoint is signed with a private key and opened with its public one.
func Example() {
	key, err := audit.NewKey()
	if err != nil {
		fmt.Println(err)
		return
	}
	head := audit.Checkpoint{Origin: "assay-audit/EXAMPLE", Size: 12, Root: tlog.RecordHash([]byte("an entry"))}
	signed, err := audit.Sign(head, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	reader, err := audit.NewVerifier(key.Public(head.Origin))
	if err != nil {
		fmt.Println(err)
		return
	}
	opened, err := reader.Open(signed.Note)
	fmt.Println(opened.Origin, opened.Size, err)
	// Output: assay-audit/EXAMPLE 12 <nil>
}
