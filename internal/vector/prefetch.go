package vector

// Prefetch hints the processor to load bytes that will be read soon. It neither reads nor blocks.
func Prefetch(b []byte) {
	if len(b) > 0 {
		prefetch(&b[0], len(b))
	}
}
