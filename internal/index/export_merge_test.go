package index

// BeforePublish makes every merge call f when it is complete but not yet published. If f returns an
// error, the merge fails with it. A nil f does nothing.
func (s *Searcher) BeforePublish(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause = f
}

// WaitForMerge waits for the running merge, if any, and does not consume its error.
func (s *Searcher) WaitForMerge() {
	s.mu.Lock()
	m := s.merging
	s.mu.Unlock()
	if m != nil {
		<-m.done
	}
}

// ReplaceWhileFilesAreLetGo replaces the snapshot by an empty one while the old files cannot be
// unmapped yet. It returns an error of the replacement, and only after the new snapshot is visible.
func (s *Searcher) ReplaceWhileFilesAreLetGo() error {
	s.setFlushed(nil, nil) // it holds the same files
	next := newSnapshot(0, nil, nil)
	defer next.release()
	s.folder.mu.Lock()
	replaced := make(chan error, 1)
	go func() { replaced <- s.replace(next) }()
	for seen := false; !seen; {
		s.mu.Lock()
		seen = s.current == next
		s.mu.Unlock()
	}
	s.folder.mu.Unlock()
	return <-replaced
}

// FindBehind simulates a search that reads the manifest, finds it outdated, and records this only
// after the writer has recorded the same manifest.
func (s *Searcher) FindBehind() error {
	info, err := s.folder.stat()
	s.setFlushed(nil, info)
	return err
}
