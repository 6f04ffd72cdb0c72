package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
)

// closingContent is a content in which a document is closed between the check of its ACL and its reading.
type closingContent struct{ store.Content }

func (c closingContent) Document(ctx context.Context, id string) (assay.Document, error) {
	d, err := c.Content.Document(ctx, id)
	if err != nil {
		return d, err
	}
	d.ACL, err = assay.RestrictTo("group:board")
	return d, err
}

// TestDocumentClosedMeanwhile checks that the text of a document is not returned if the ACL that came with it
// hides it, although the one before did not.
func TestDocumentClosedMeanwhile(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme")
	ann := assay.Principal{User: "ann", Groups: []string{"staff"}}
	s := mustSession(t, h, roleGrant("acme", ann, identity.Editor))
	d := putPDF(t, s, "boiler.pdf", boilerPDF(), "")
	err := do(t.Context(), s, "Document", func(c *sessionCall) error {
		open := c.engine.content
		defer func() { c.engine.content = open }()
		c.engine.content = closingContent{open}
		_, err := c.engine.Document(t.Context(), ann, d.ID)
		_, err2 := c.engine.DocumentVersion(t.Context(), ann, d.ID, "")
		for _, err := range []error{err, err2} {
			if !errors.Is(err, assay.ErrNotFound) {
				t.Errorf("error %v, want that there is no such document", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
