package assay_test

import (
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
)

// Select documents by their metadata.
func ExampleParseFilter() {
	filter, err := assay.ParseFilter(`team = "finance" and year >= 2022`)
	fmt.Println(filter, err)
	_, err = assay.ParseFilter(`team =`)
	fmt.Println(errors.Is(err, assay.ErrInvalid), assay.ExitCode(err), assay.StatusCode(err))
	// Output:
	// team = "finance" and year >= 2022 <nil>
	// true 2 400
}

// An Access is made from a principal, and decides which documents it sees.
func ExamplePrincipal_Access() {
	legal, err := assay.RestrictTo("group:legal")
	if err != nil {
		panic(err)
	}
	for _, p := range []assay.Principal{{User: "ann", Groups: []string{"legal"}}, {User: "bob"}, {}} {
		access := p.Access()
		fmt.Printf("%q: %t, %t\n", p.User, access.Allows("handbook", assay.ACL{}), access.Allows("handbook", legal))
	}
	// Output:
	// "ann": true, true
	// "bob": true, false
	// "": false, false
}
