package wire

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/assay-rag/assay/llm"
)

// Authorise gets an access token and sends it with each further request of c, as a bearer token. The
// token is removed from errors. If get fails, the error is an *llm.Error of kind BadKey, or wraps the
// context's error if the context has ended.
func (c *Client) Authorise(ctx context.Context, get func(context.Context) (Secret, error)) error {
	token, err := get(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("ask %s: %w", c.Name, ctx.Err())
	case err != nil:
		return c.Fail(llm.BadKey, "no access token: %v", err)
	case token.Empty():
		return c.Fail(llm.BadKey, "no access token: it is empty")
	}
	before := c.Header
	c.Secrets = append(slices.Clone(c.Secrets), token)
	c.Header = func(r *http.Request) {
		if before != nil {
			before(r)
		}
		r.Header.Set("Authorization", "Bearer "+token.Reveal())
	}
	return nil
}
