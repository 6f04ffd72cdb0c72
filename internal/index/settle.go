package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// backgroundMerge is one run of background merges.
type backgroundMerge struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the run ends
}

// startMerging starts a background merge if one is due and none is running. It reports whether one
// is running afterwards.
func (s *Searcher) startMerging() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.merging != nil {
		return true
	}
	if s.flushed == nil || toMerge(s.flushed.views, s.limits.smallRows) == nil {
		return false
	}
	ctx, cancel := context.WithCancel(s.lifetime)
	m := &backgroundMerge{cancel: cancel, done: make(chan struct{})}
	s.merging = m
	go func() {
		defer close(m.done)
		err := s.mergeAll(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if ctx.Err() == nil { // otherwise the merge was abandoned
			s.failed = errors.Join(s.failed, err)
		}
		cancel()
		s.merging = nil
	}()
	return true
}

// mergeAll merges until no merge is due.
func (s *Searcher) mergeAll(ctx context.Context) error {
	for {
		more, err := s.mergeOnce(ctx)
		if err != nil {
			return fmt.Errorf("merge segments: %w", err)
		}
		if !more {
			return nil
		}
	}
}

// mergeOnce merges the segments on disk that are due, if any. Searches, updates and Flush are not
// blocked until the merged segment is published.
func (s *Searcher) mergeOnce(ctx context.Context) (more bool, err error) {
	before := s.useFlushed()
	if before == nil { // closed meanwhile, or another process wrote the manifest
		return false, nil
	}
	defer before.release()
	group := toMerge(before.views, s.limits.smallRows)
	if group == nil {
		return false, nil
	}
	to := &fileSink{folder: s.folder}
	defer to.close()
	m, err := merge(ctx, group, to)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	pause := s.pause
	s.mu.Unlock()
	if pause != nil {
		if err := pause(); err != nil {
			return false, err
		}
	}
	return s.publish(ctx, m, to)
}

// publish replaces the sources of a merge by the merged segment, on disk and in the searched
// snapshot. It returns false if another process has replaced the manifest.
func (s *Searcher) publish(ctx context.Context, m *merged, to *fileSink) (bool, error) {
	if err := acquire(ctx, s.flushing); err != nil {
		return false, err
	}
	defer release(s.flushing)
	unchanged, err := s.manifestUnchanged()
	if err != nil || !unchanged {
		s.setFlushed(nil, nil)
		return false, err
	}
	flushed := s.useFlushed()
	if flushed == nil { // see mergeOnce
		return false, nil
	}
	defer flushed.release()
	views, err := m.in(ctx, flushed.views, to)
	if err != nil {
		return false, err
	}
	onDisk := newSnapshot(flushed.sequence, flushed.models, views)
	defer onDisk.release()
	current, err := s.update(ctx, func(snap *snapshot) (*snapshot, error) {
		if snap.same(flushed) {
			return onDisk.use(), nil
		}
		views, err := m.in(ctx, snap.views, new(fileSink))
		if err != nil {
			return nil, err
		}
		return newSnapshot(snap.sequence, snap.models, views), nil
	})
	if err != nil {
		return false, err
	}
	defer current.release()
	if err := s.save(onDisk); err != nil {
		return false, err
	}
	return true, s.folder.removeOthers(append(onDisk.files(), current.files()...))
}

// Settle waits until no merge is due or running. It returns the error of a merge that failed. If
// ctx ends, Settle abandons the running merge. After Settle returns, nothing is written until the
// next Flush, so the content's writer may hand over its role. In a process that only reads, no
// merges run. After Close, Settle returns fs.ErrClosed.
func (s *Searcher) Settle(ctx context.Context) error {
	for {
		if err := s.takeFailure(); err != nil {
			return fmt.Errorf("index in %s: %w", s.folder.dir, err)
		}
		s.mu.Lock()
		merging, closed := s.merging, s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return fmt.Errorf("index: %w", fs.ErrClosed)
		case merging == nil && !s.startMerging():
			return nil
		case merging == nil:
			continue
		}
		select {
		case <-merging.done:
		case <-ctx.Done():
			merging.cancel()
			<-merging.done
			return ctx.Err()
		}
	}
}

func (s *Searcher) takeFailure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.failed
	s.failed = nil
	return err
}
