package move

import (
	"crypto/rand"
	"errors"
	"testing"

	"github.com/assay-rag/assay"
)

// TestCheckIdentity refuses words that would be more than a part of a name.
func TestCheckIdentity(t *testing.T) {
	if err := checkIdentity(rand.Text()); err != nil {
		t.Error(err)
	}
	for _, word := range []string{"", "word", "../../../../../../../../etc", "X; DROP SCHEMA assay_system CASCADE", rand.Text() + "/.."} {
		if err := checkIdentity(word); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("%q: %v", word, err)
		}
	}
}
