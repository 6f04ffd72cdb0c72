package journal

import (
	"bytes"
	"strconv"
)

// maxExponentDigits limits exponents to values that cannot overflow an int.
const maxExponentDigits = 8

// number transcodes a number. It keeps the digits and writes them in the form that encoding/json
// uses for a float64.
func (t *transcoder) number() error {
	start := t.pos
	negative := t.src[t.pos] == '-'
	if negative {
		t.pos++
	}
	whole := t.digits()
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return t.fail("a number is malformed")
	}
	var fraction []byte
	exponent, simple := 0, true
	if t.pos < len(t.src) && t.src[t.pos] == '.' {
		simple = false
		t.pos++
		if fraction = t.digits(); len(fraction) == 0 {
			return t.fail("a number has no digit after its point")
		}
	}
	if t.pos < len(t.src) && (t.src[t.pos] == 'e' || t.src[t.pos] == 'E') {
		simple = false
		var err error
		if exponent, err = t.exponent(); err != nil {
			return err
		}
	}
	if simple && whole[0] != '0' && len(whole) <= 21 {
		t.dst = append(t.dst, t.src[start:t.pos]...)
		return nil
	}
	t.dst = appendDecimal(t.dst, negative, whole, fraction, exponent)
	return nil
}

// digits reads decimal digits, possibly none.
func (t *transcoder) digits() []byte {
	start := t.pos
	for t.pos < len(t.src) && '0' <= t.src[t.pos] && t.src[t.pos] <= '9' {
		t.pos++
	}
	return t.src[start:t.pos]
}

// exponent reads an exponent, beginning with the e.
func (t *transcoder) exponent() (int, error) {
	t.pos++
	sign := 1
	if t.pos < len(t.src) && (t.src[t.pos] == '+' || t.src[t.pos] == '-') {
		if t.src[t.pos] == '-' {
			sign = -1
		}
		t.pos++
	}
	digits := t.digits()
	if len(digits) == 0 {
		return 0, t.fail("a number has an empty exponent")
	}
	digits = bytes.TrimLeft(digits, "0")
	if len(digits) > maxExponentDigits {
		return 0, t.fail("a number's exponent has more than %d digits", maxExponentDigits)
	}
	n := 0
	for _, c := range digits {
		n = 10*n + int(c-'0')
	}
	return sign * n, nil
}

// appendDecimal appends whole.fraction × 10^exponent, exactly.
func appendDecimal(dst []byte, negative bool, whole, fraction []byte, exponent int) []byte {
	digits := append(bytes.Clone(whole), fraction...)
	point := len(whole) + exponent // the value is 0.digits × 10^point
	trimmed := bytes.TrimLeft(digits, "0")
	point -= len(digits) - len(trimmed)
	digits = bytes.TrimRight(trimmed, "0")
	if len(digits) == 0 {
		return append(dst, '0')
	}
	if negative {
		dst = append(dst, '-')
	}
	switch {
	case point < -5 || point > 21:
		dst = append(dst, digits[0])
		if len(digits) > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		dst = append(dst, 'e')
		if point > 0 {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, int64(point-1), 10)
	case point <= 0:
		dst = append(dst, "0."...)
		return append(appendZeros(dst, -point), digits...)
	case point >= len(digits):
		return appendZeros(append(dst, digits...), point-len(digits))
	}
	dst = append(append(dst, digits[:point]...), '.')
	return append(dst, digits[point:]...)
}

func appendZeros(dst []byte, n int) []byte {
	return append(dst, "00000000000000000000000000"[:n]...)
}
