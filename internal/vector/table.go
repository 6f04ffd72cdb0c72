package vector

// A Table gives the sum of a query's values over the positive dimensions of a code, minus the sum
// over the others. For each byte of a code and each of its values, it holds the sum over eight
// dimensions.
type Table [][256]int16

// Fill computes the table of a query, whose absolute values are at most 4095. It reuses t's memory
// if possible.
func (t *Table) Fill(query []int16) {
	n := 8 * Words(len(query))
	if cap(*t) < n {
		*t = make(Table, n)
	}
	*t = (*t)[:n]
	for i := range *t {
		var eight [8]int16
		if 8*i < len(query) {
			copy(eight[:], query[8*i:])
		}
		sums := &(*t)[i]
		sums[0] = 0
		for _, q := range eight {
			sums[0] -= q
		}
		for bit, q := range eight {
			for v := range 1 << bit {
				sums[1<<bit+v] = sums[v] + 2*q
			}
		}
	}
}

// Sum returns the sum for a row of a group of the table's dimensions.
func (t Table) Sum(g Group, row int) int {
	sum, at := 0, row/lanes*octetBytes(len(t)/8)+8*(row%lanes)
	for ; len(t) >= 8; t = t[8:] {
		code := g[at : at+8]
		eight := t[:8]
		sum += int(eight[0][code[0]]) + int(eight[1][code[1]]) + int(eight[2][code[2]]) + int(eight[3][code[3]]) +
			int(eight[4][code[4]]) + int(eight[5][code[5]]) + int(eight[6][code[6]]) + int(eight[7][code[7]])
		at += 8 * lanes
	}
	return sum
}
