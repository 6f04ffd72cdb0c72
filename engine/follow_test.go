package engine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/assay-rag/assay"
)

// TestFollowInterrupted tells a run that has failed from a store that does not answer, after which the run may go on.
func TestFollowInterrupted(t *testing.T) {
	for _, x := range []struct {
		err       error
		ofRun     bool
		resumable bool
	}{
		{fmt.Errorf("journal of run r: %w: the connection was lost", assay.ErrUnavailable), true, true},
		{&RunError{Run: "r", Err: fmt.Errorf("a model: %w", assay.ErrUnavailable)}, true, false},
		{fmt.Errorf("run r: %w", assay.ErrForbidden), false, false},
		{nil, false, false},
	} {
		got := interrupted("r", x.err)
		ended, ofRun := errors.AsType[*RunError](got)
		if ofRun != x.ofRun || ofRun && ended.Resumable != x.resumable || x.err != nil && !errors.Is(got, x.err) {
			t.Errorf("%v becomes %#v", x.err, got)
		}
	}
}
