package vector

// MaxValue is the largest absolute value of the numbers of a row and of a query in Dot, both of
// which have twelve bits.
const MaxValue = 2047

// Padded returns the number of dimensions rounded up to a multiple of the number that Dot processes
// at once.
func Padded(dimensions int) int { return (dimensions + 31) &^ 31 }

// RowBytes returns the size of a row of the given dimensions.
func RowBytes(dimensions int) int { return Padded(dimensions) / 2 * 3 }

// PutRow writes the values as a row of RowBytes(len(values)) bytes. A value v is stored as v>>4, a
// signed byte, and v&15. First come the bytes, one per dimension, padded with zeros to a multiple
// of 32. Then follow 16 bytes for each 32 dimensions, of which byte i has the low bits of dimension
// i in its lower half and those of dimension i+16 in its upper half.
func PutRow(row []byte, values []int16) {
	clear(row)
	low := row[Padded(len(values)):]
	for i, v := range values {
		row[i] = byte(v >> 4)
		low[i/32*16+i%16] |= byte(v&15) << (i % 32 / 16 * 4)
	}
}

// Row reads len(values) values of a row.
func Row(row []byte, values []int16) {
	low := row[Padded(len(values)):]
	for i := range values {
		values[i] = int16(int8(row[i]))<<4 | int16(low[i/32*16+i%16]>>(i%32/16*4)&15)
	}
}

// Dot returns the product of a row and a query of Padded(dimensions) values. The values past the
// last dimension must be zero.
func Dot(row []byte, q []int16) int64 {
	_ = row[:len(q)/2*3]
	return dot(row, q)
}

// dotPortable is Dot for any processor.
func dotPortable(row []byte, q []int16) int64 {
	var sum int64
	low := row[len(q):]
	for ; len(q) >= 32; row, low, q = row[32:], low[16:], q[32:] {
		high, low, q := (*[32]byte)(row), (*[16]byte)(low), (*[32]int16)(q)
		var part int32
		for i, l := range low {
			part += (int32(int8(high[i]))<<4 | int32(l&15)) * int32(q[i])
			part += (int32(int8(high[i+16]))<<4 | int32(l>>4)) * int32(q[i+16])
		}
		sum += int64(part)
	}
	return sum
}
