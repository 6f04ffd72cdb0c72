package index

// BeforePublish makes every merge call f when it is done and nobody knows of it
// yet; nil: nothing. The merge fails with f's error.
func (s *Searcher) BeforePublish(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause = f
}

// WaitForMerge waits for the merge under way, if any, and leaves its error to
// others.
func (s *Searcher) WaitForMerge() {
	s.mu.Lock()
	m := s.merging
	s.mu.Unlock()
	if m != nil {
		<-m.done
	}
}

// ReplaceWhileFilesAreLetGo makes the index one of nothing, while what it was
// cannot be unmapped yet, and returns when others see that.
func (s *Searcher) ReplaceWhileFilesAreLetGo() error {
	s.setFlushed(nil, nil) // which holds the same files
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

// FindBehind tells the index what one learns that looks at the manifest and finds
// it behind: too late, when the manifest's writer has told of it.
func (s *Searcher) FindBehind() error {
	info, err := s.folder.stat()
	s.setFlushed(nil, info)
	return err
}
