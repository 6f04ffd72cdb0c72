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
