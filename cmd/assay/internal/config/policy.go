package config

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
)

// Policy returns the IAM policy that allows what is configured of Bedrock, and no
// more.
func (s *Set) Policy(context.Context) ([]byte, error) {
	return nil, fmt.Errorf("nothing of Bedrock is configured: %w", assay.ErrInvalid)
}
