package main

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSyncSchedule checks that a folder that changes all the time does not keep the other sources from
// their syncs.
func TestSyncSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := newSyncSchedule([]string{"bucket", "docs"}, 10*time.Minute)
		defer s.ticker.Stop()
		go func() {
			minutes := time.NewTicker(time.Minute)
			defer minutes.Stop()
			for {
				select {
				case <-minutes.C:
					s.changed <- "docs"
				case <-ctx.Done():
					return
				}
			}
		}()
		all := 0
		for range 60 {
			due, err := s.next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(due, "bucket") {
				all++
			}
		}
		if all < 5 {
			t.Errorf("the bucket was due %d times in an hour, want 5", all)
		}
	})
}
