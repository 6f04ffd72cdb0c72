package plot

import (
	"math"
	"unicode/utf8"
)

// scale maps values to positions on an axis.
type scale struct {
	low, high float64 // values at the ends
	from, to  float64 // positions
	log       bool
	marks     []float64 // labelled values
	names     []string
}

// newScale fits an axis to values, so that its end marks enclose them. If zero is set, the axis
// includes 0, so that lengths can be compared.
func newScale(a Axis, values []float64, zero bool, from, to float64) scale {
	s := scale{from: from, to: to, log: a.Log}
	if len(a.Names) > 0 {
		s.low, s.high, s.log = -0.5, float64(len(a.Names))-0.5, false
		every := (len(a.Names) + 4) / 5
		for i := 0; i < len(a.Names); i += every {
			s.marks, s.names = append(s.marks, float64(i)), append(s.names, a.Names[i])
		}
		return s
	}
	low, high := a.Low, a.High
	given := low != 0 || high != 0
	if !given {
		low, high = bounds(values, a.Log)
		if zero && !a.Log {
			low, high = min(low, 0), max(high, 0)
		}
	}
	if a.Log {
		s.decades(low, high)
	} else {
		s.even(low, high, given)
	}
	for _, m := range s.marks {
		s.names = append(s.names, Number(m))
	}
	return s
}

// bounds returns the least and the greatest of the values that can be drawn.
func bounds(values []float64, positive bool) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if drawn(v, positive) {
			low, high = min(low, v), max(high, v)
		}
	}
	switch {
	case low > high && positive:
		return 1, 10
	case low > high:
		return 0, 1
	case low == high && low == 0:
		return 0, 1
	case low == high && !positive:
		return min(0, low), max(0, high)
	}
	return low, high
}

// most is the greatest value that is drawn, with finite differences and marks. least is the
// smallest value on a logarithmic axis.
const most, least = 1e100, 1e-100

// drawn reports whether a value can be drawn.
func drawn(v float64, positive bool) bool {
	return math.Abs(v) <= most && (!positive || v >= least)
}

// even marks an axis at multiples of 1, 2 or 5 times a power of ten. Unless its ends are given, it
// ends at marks.
func (s *scale) even(low, high float64, given bool) {
	if !(high-low > least) {
		high = low + 1
	}
	step := niceStep((high - low) / 5)
	first, last := math.Floor(low/step), math.Ceil(high/step)
	s.low, s.high = first*step, last*step
	if given {
		s.low, s.high = low, high
		first, last = math.Ceil(low/step-1e-9), math.Floor(high/step+1e-9)
	}
	for i := range int(min(last-first, 20)) + 1 { // about six; a range too narrow for its magnitude has no more digits
		s.marks = append(s.marks, (first+float64(i))*step)
	}
}

// niceStep returns the least of 1, 2 and 5 times a power of ten that is at least x.
func niceStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= x*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// decades marks a logarithmic axis at up to eight powers of ten. With fewer than three decades it
// adds marks between them.
func (s *scale) decades(low, high float64) {
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if last <= first {
		last = first + 1
	}
	s.low, s.high = math.Pow(10, first), math.Pow(10, last)
	factors := []float64{1}
	if last-first < 3 {
		factors = []float64{1, 2, 5}
	}
	for e := first; e <= last; e += math.Ceil((last - first) / 7) {
		for _, f := range factors {
			if m := f * math.Pow(10, e); m <= s.high*(1+1e-9) {
				s.marks = append(s.marks, m)
			}
		}
	}
}

// at returns the position of a value. Values beyond the ends are drawn at the ends.
func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	v = min(max(v, low), high)
	if s.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// horizontal draws the axis below a plot, with its grid up to y.
func (c *canvas) horizontal(s scale, label string, base, y float64) {
	for i, m := range s.marks {
		x := s.at(m)
		c.line("grid", x, y, x, base)
		name := short(s.names[i], 12)
		half := letter * float64(utf8.RuneCountInString(name)) / 2
		c.text("tick", "middle", min(x, width-half), base+13, name)
	}
	c.line("axis", s.from, base, s.to, base)
	label = short(label, whole)
	half := letter * float64(utf8.RuneCountInString(label)) / 2
	c.text("label", "middle", max(min((s.from+s.to)/2, width-half), half), base+28, label)
}

// vertical draws the axis at the left of a plot, with its grid.
func (c *canvas) vertical(s scale, label string) {
	for i, m := range s.marks {
		y := s.at(m)
		c.line("grid", left, y, width-right, y)
		c.text("tick", "end", left-5, y+4, short(s.names[i], 6))
	}
	if label != "" {
		c.text("label", "start", 2, top+5, short(label, whole))
	}
}
