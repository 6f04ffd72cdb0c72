package index

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// Flush implements Index. Write errors wrap assay.ErrFull or assay.ErrReadOnly. After an error the
// index on disk is unchanged, and this index remains usable. After a flush, segments are merged in
// the background (see Settle). If such a merge has failed since the last Flush, its error is
// returned too.
func (s *Searcher) Flush(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return fmt.Errorf("flush index to %s: %w", s.folder.dir, errors.Join(err, s.takeFailure()))
	}
	failure := s.takeFailure()
	s.startMerging()
	if failure != nil {
		return fmt.Errorf("index in %s: %w", s.folder.dir, failure)
	}
	return nil
}

func (s *Searcher) flush(ctx context.Context) error {
	if err := acquire(ctx, s.flushing); err != nil {
		return err
	}
	defer release(s.flushing)
	to := &fileSink{folder: s.folder}
	defer to.close()
	// Flush in steps, so that a concurrent search waits only for the text.
	text, err := s.update(ctx, func(snap *snapshot) (*snapshot, error) { return s.advance(ctx, snap, to) })
	if err != nil {
		return err
	}
	text.release()
	if err := s.flushVectors(ctx, to); err != nil {
		return err
	}
	snap, err := s.update(ctx, func(snap *snapshot) (*snapshot, error) { return snap.persist(ctx, to) })
	if err != nil {
		return err
	}
	defer snap.release()
	unchanged, err := s.manifestSays(snap)
	if err != nil || unchanged && s.swept {
		return err
	}
	if !unchanged {
		if err := s.save(snap); err != nil {
			return err
		}
	}
	s.swept = true
	return s.folder.removeOthers(snap.files())
}

// flushVectors catches up with the vectors of all models in the source and drops the vectors of
// other models.
func (s *Searcher) flushVectors(ctx context.Context, to *fileSink) error {
	source, ok := s.source.(VectorSource)
	if !ok {
		return nil
	}
	models, err := source.Models(ctx)
	if err != nil {
		return fmt.Errorf("read the models of vectors: %w", err)
	}
	steps := []func(*snapshot) (*snapshot, error){func(snap *snapshot) (*snapshot, error) {
		return snap.withoutModels(func(name string) bool { return !slices.Contains(models, name) }), nil
	}}
	for _, model := range models {
		steps = append(steps, func(snap *snapshot) (*snapshot, error) {
			return snap.catchUpModel(ctx, source, model, s.limits.vectorBytes, to)
		})
	}
	for _, step := range steps {
		snap, err := s.update(ctx, step)
		if err != nil {
			return err
		}
		snap.release()
	}
	return nil
}

// save writes the snapshot to the folder. The caller must hold s.flushing.
func (s *Searcher) save(snap *snapshot) error {
	info, err := s.folder.save(snap, s.identity)
	if err != nil {
		return err
	}
	s.setFlushed(snap, info)
	return nil
}

// setFlushed records the manifest on disk and the snapshot that it describes. A nil snap means that
// the content is unknown. In that case setFlushed keeps what is already known of the same manifest.
func (s *Searcher) setFlushed(snap *snapshot, info fs.FileInfo) {
	s.mu.Lock()
	if s.closed || snap == nil && info != nil && sameManifest(info, s.seen) {
		s.mu.Unlock()
		return
	}
	before := s.flushed
	s.flushed, s.seen = nil, info
	if snap != nil {
		s.flushed = snap.use()
	}
	s.mu.Unlock()
	if before != nil {
		before.release() // see replace
	}
}

// useFlushed returns the snapshot of the manifest that was last read or written, or nil if it is
// unknown. The caller must release it.
func (s *Searcher) useFlushed() *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flushed == nil {
		return nil
	}
	return s.flushed.use()
}

// manifestSays reports whether the manifest that was last read or written is still on disk and
// describes snap.
func (s *Searcher) manifestSays(snap *snapshot) (bool, error) {
	unchanged, err := s.manifestUnchanged()
	s.mu.Lock()
	defer s.mu.Unlock()
	return unchanged && s.flushed.same(snap), err
}

// manifestUnchanged reports whether the manifest that was last read or written is still on disk.
func (s *Searcher) manifestUnchanged() (bool, error) {
	info, err := s.folder.stat()
	s.mu.Lock()
	defer s.mu.Unlock()
	return info != nil && sameManifest(info, s.seen), err
}

// same reports whether two snapshots have the same content.
func (s *snapshot) same(o *snapshot) bool {
	if s == nil || s.sequence != o.sequence || len(s.models) != len(o.models) {
		return false
	}
	for model, sequence := range o.models {
		if at, ok := s.models[model]; !ok || at != sequence {
			return false
		}
	}
	return slices.Equal(s.views, o.views)
}

// persist returns the snapshot with all its data in files. It writes new files to the fileSink for
// segments and vectors that are only in memory or whose files were removed from the folder by
// another process.
func (s *snapshot) persist(ctx context.Context, to *fileSink) (*snapshot, error) {
	views := slices.Clone(s.views)
	lost := slices.DeleteFunc(slices.Clone(views), func(v *view) bool { return v.segment.file.onDisk() })
	if len(lost) > 0 {
		m, err := merge(ctx, lost, to)
		if err == nil {
			views, err = m.in(ctx, views, to)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range views {
		var err error
		if views[i], err = views[i].persistVectors(to); err != nil {
			return nil, err
		}
	}
	return newSnapshot(s.sequence, s.models, views), nil
}

// persistVectors returns the view with its sidecars in files.
func (v *view) persistVectors(to *fileSink) (*view, error) {
	for i, c := range v.sidecars {
		if c.file.onDisk() {
			continue
		}
		f, err := to.make(vectorsSuffix, func(w io.Writer) error {
			_, err := w.Write(c.file.bytes)
			return err
		})
		if err != nil {
			return nil, err
		}
		written, err := f.vectors(uint32(v.segment.rows))
		if err != nil {
			return nil, err
		}
		list := slices.Clone(v.sidecars)
		list[i] = &sidecar{file: f, vectors: written, replaced: c.replaced}
		v = v.withSidecars(list)
	}
	return v, nil
}
