package identity_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store/sqlite"
)

// Create an API key, accept a request with it, and refuse the next one after it was revoked.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "assay")
	check(err)
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(ctx, dir)
	check(err)
	defer store.Close()
	system, err := store.System(ctx)
	check(err)
	defer system.Close()

	keys := identity.NewKeys(system, nil)
	roles, err := identity.ParseRoles("reader", "editor:handbook")
	check(err)
	key, text, err := keys.Create(ctx, assay.Local(), identity.KeySpec{Tenant: "default", User: "ann", Groups: []string{"finance"}, Roles: roles})
	check(err)

	auth, err := identity.New(identity.Options{Keys: keys})
	check(err)
	credential, err := identity.FromHeader(http.Header{"Authorization": {"Bearer " + text}})
	check(err)
	grant, err := auth.Authenticate(ctx, credential)
	check(err)
	names, all := grant.Collections(identity.ScopeIngest)
	fmt.Println(grant.Tenant, grant.Principal.User, grant.Allows(identity.ScopeAsk), names, all)

	check(keys.Revoke(ctx, assay.Local(), key.ID, "left in a repository"))
	_, err = auth.Authenticate(ctx, credential)
	fmt.Println(err, identity.ReasonOf(err))
	// Output:
	// default ann true [handbook] false
	// not authenticated revoked
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
