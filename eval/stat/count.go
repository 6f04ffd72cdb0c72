package stat

// One returns 1 for true and 0 for false.
func One(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Share returns n as a fraction of all, or 0 if all is 0.
func Share(n, all int) float64 { return float64(n) / float64(max(all, 1)) }
