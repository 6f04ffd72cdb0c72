package vector

// Prefetch asks the processor to bring these bytes near, for they are read soon.
// It reads nothing and waits for nothing.
func Prefetch(b []byte) {
	if len(b) > 0 {
		prefetch(&b[0], len(b))
	}
}
