package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay/eval/stat"
)

func near(a, b float64) bool { return math.Abs(a-b) < 0.00005 }

func TestMeans(t *testing.T) {
	tests := []struct {
		name string
		got  float64
		want float64
	}{
		{"mean", stat.Mean([]float64{1, 2, 6}), 3},
		{"mean of none", stat.Mean(nil), 0},
		{"mean of a large and small ones", stat.Mean([]float64{1e16, 1, 1, -1e16}), 0.5}, // a plain sum loses both ones
	}
	for _, tt := range tests {
		if !near(tt.got, tt.want) {
			t.Errorf("%s = %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// TestPercentile compares with figures of NumPy 2.4, percentile(…), which uses the same method: for
// p of n values, the value at (n-1)·p/100, interpolated between its neighbours.
func TestPercentile(t *testing.T) {
	xs := []float64{50, 15, 40, 20, 35} // sorted: 15 20 35 40 50
	tests := map[float64]float64{
		0: 15, 100: 50, 25: 20, 50: 35,
		5:  16, // at 0.2: 15 + 0.2·5
		30: 23, // at 1.2: 20 + 0.2·15
		40: 29, // at 1.6: 20 + 0.6·15
		95: 48, // at 3.8: 40 + 0.8·10
		-3: 15, 300: 50,
	}
	for p, want := range tests {
		if got := stat.Percentile(xs, p); !near(got, want) {
			t.Errorf("Percentile(%v) = %v, want %v", p, got, want)
		}
	}
	if xs[0] != 50 {
		t.Error("Percentile has sorted what it was given")
	}
	if got := stat.Percentile(nil, 50); got != 0 {
		t.Errorf("Percentile of none = %v, want 0", got)
	}
	if got := stat.Percentile([]float64{7}, 95); got != 7 {
		t.Errorf("Percentile of one = %v, want 7", got)
	}
}

// TestBootstrap compares the bounds with those of the normal distribution, which the means of many
// cases approach.
func TestBootstrap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	xs := make([]float64, 400)
	squares := 0.0
	for i := range xs {
		xs[i] = random.Float64()
	}
	mean := stat.Mean(xs)
	for _, x := range xs {
		squares += (x - mean) * (x - mean)
	}
	half := 1.96 * math.Sqrt(squares) / float64(len(xs))
	got := stat.Bootstrap(xs)
	if got.Mean != mean || math.Abs(mean-half-got.Low) > 0.1*half || math.Abs(mean+half-got.High) > 0.1*half {
		t.Errorf("Bootstrap = %+v, want about %.4f ± %.4f", got, mean, half)
	}
	if again := stat.Bootstrap(xs); again != got {
		t.Errorf("Bootstrap = %+v, then %+v", got, again)
	}
	if got, want := stat.Bootstrap([]float64{0.25}), (stat.Interval{Mean: 0.25, Low: 0.25, High: 0.25}); got != want {
		t.Errorf("Bootstrap of one = %+v, want %+v", got, want)
	}
	if got := stat.Bootstrap(nil); got != (stat.Interval{}) {
		t.Errorf("Bootstrap of none = %+v", got)
	}
}

// TestBootstrapPercentile compares the median's bounds with those by ranks: of 401 values from 0 to
// 400, the ranks 200 ± 1.96·√401/2, which are 180 and 220.
func TestBootstrapPercentile(t *testing.T) {
	var xs []float64
	for i := range 401 {
		xs = append(xs, float64((i*7)%401))
	}
	got := stat.BootstrapPercentile(xs, 50)
	if got.Mean != 200 || math.Abs(got.Low-180) > 4 || math.Abs(got.High-220) > 4 {
		t.Errorf("median %+v, want about 200 from 180 to 220", got)
	}
	if got := stat.BootstrapPercentile(nil, 95); got != (stat.Interval{}) {
		t.Errorf("of none: %+v", got)
	}
}

// TestBounds checks that of 40 values one is below the bounds and one above.
func TestBounds(t *testing.T) {
	var xs []float64
	for i := range 40 {
		xs = append(xs, float64(40-i))
	}
	if low, high := stat.Bounds(xs); low != 2 || high != 39 {
		t.Errorf("Bounds of 1 to 40 = %v and %v, want 2 and 39", low, high)
	}
}

// TestDrawsAreSteady checks the generator's first draws, so that published intervals can be
// reproduced.
func TestDrawsAreSteady(t *testing.T) {
	var first []int
	n := 0
	stat.Draws(5, func(draw []int) {
		if n++; n == 1 {
			first = append(first, draw...)
		}
	})
	if diff := cmp.Diff([]int{4, 0, 0, 1, 1}, first); diff != "" || n != stat.Resamples {
		t.Errorf("%d draws, the first of which (-want +got)\n%s", n, diff)
	}
}

func TestRandomisation(t *testing.T) {
	tests := []struct {
		name string
		ds   []float64
		want float64
	}{
		// Of the 16 assignments of 1, 2, 3, 4 only the two with equal signs reach a sum of 10.
		{"all one way", []float64{1, 2, 3, 4}, 0.125},
		// 0.1, 0.2, -0.05, 0.3 and one without a difference: of 16 sums those of ±(.1+.2-.05+.3) =
		// .55 and ±(.1+.2+.05+.3) = .65 are as far: 4 of 16. SciPy's permutation_test gives 0.25.
		{"one the other way", []float64{0.1, 0.2, -0.05, 0.3, 0}, 0.25},
		{"no difference", []float64{0, 0}, 1},
		{"nothing", nil, 1},
		{"one case", []float64{0.4}, 1},
		{"they cancel out", []float64{0.5, -0.5}, 1},
		// Sums that differ only by rounding are equal: (.1+.2) and .3. All 8 of ±.1±.2±.3 are 0
		// (2), ±.2 (2), ±.4 (2), ±.6 (2); the sum .1+.2-.3 = 0 is reached by all.
		{"equal but for rounding", []float64{0.1, 0.2, -0.3}, 1},
	}
	for _, tt := range tests {
		if got := stat.Randomisation(tt.ds); !near(got, tt.want) {
			t.Errorf("%s: p = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestRandomisationDrawn compares p for too many cases to enumerate with that of SciPy 1.17,
// permutation_test with 200,000 draws: 0.7301.
func TestRandomisationDrawn(t *testing.T) {
	ds := []float64{
		0.05, 0.11, -0.005, -0.128, -0.041, -0.148, 0.062, 0.318, -0.048, -0.074, 0.148, 0.121, 0.071, -0.136, 0.044, 0.189,
		-0.219, -0.042, -0.33, -0.208, -0.318, 0.003, -0.203, 0.104, 0.081, 0.013, -0.453, -0.058, 0.04, 0.073, -0.256, -0.046,
		-0.146, -0.112, 0.262, -0.112, 0.043, 0.227, -0.067, 0.028, 0.072, 0.063, -0.195, 0.065, 0.322, -0.259, 0.222, 0.074,
		-0.078, 0.45, 0.202, -0.19, 0.065, 0.165, 0.012, 0.187, 0.037, 0.183, 0.338, -0.085,
	}
	p := stat.Randomisation(ds)
	if math.Abs(p-0.7301) > 0.02 { // four standard errors of 9,999 draws
		t.Errorf("p = %v, want about 0.7301", p)
	}
	if again := stat.Randomisation(ds); again != p {
		t.Errorf("p = %v, then %v", p, again)
	}
	for i := range ds {
		ds[i] = 0.1 + math.Abs(ds[i])
	}
	if p := stat.Randomisation(ds); p != 0.0001 { // no draw is as far: 1/10,000
		t.Errorf("p of 60 cases that differ one way = %v, want 0.0001", p)
	}
}

// TestRandomisationIsFair draws differences around 0, for numbers of cases that are and are not
// enumerated. p must be below 0.05 about one time in twenty.
func TestRandomisationIsFair(t *testing.T) {
	for _, cases := range []int{12, 30} {
		random := rand.New(rand.NewPCG(3, uint64(cases)))
		below := 0
		const times = 200
		for range times {
			ds := make([]float64, cases)
			for i := range ds {
				ds[i] = random.NormFloat64()
			}
			if stat.Randomisation(ds) <= 0.05 {
				below++
			}
		}
		if below < 2 || below > 22 {
			t.Errorf("of %d cases without a difference p is at most 0.05 in %d of %d samples, want about %d", cases, below, times, times/20)
		}
	}
}

func TestPaired(t *testing.T) {
	a, b := []float64{0.5, 0.7, 0.3, 0.9, 0.6}, []float64{0.4, 0.5, 0.35, 0.6, 0.6}
	got := stat.Paired(a, b)
	// (.1 + .2 - .05 + .3 + 0) / 5
	if !near(got.Mean, 0.11) || !near(got.P, 0.25) || !(got.Low < got.Mean && got.Mean < got.High && got.Low > -0.05 && got.High <= 0.3) {
		t.Errorf("Paired = %+v", got)
	}
	back := stat.Paired(b, a)
	if !near(back.Mean, -got.Mean) || !near(back.Low, -got.High) || !near(back.High, -got.Low) || back.P != got.P {
		t.Errorf("Paired the other way round = %+v, of %+v", back, got)
	}
	if got := stat.Paired(a, a); got != (stat.Difference{P: 1}) {
		t.Errorf("Paired with itself = %+v", got)
	}
	if got := stat.Paired(nil, nil); got != (stat.Difference{P: 1}) {
		t.Errorf("Paired of nothing = %+v", got)
	}
}

func TestBins(t *testing.T) {
	scores := []float64{0, 0.1, 0.3, 0.5, 0.55, 0.75, 1}
	right := []bool{false, true, false, true, false, true, true}
	want := []stat.Bin{
		{Low: 0, High: 0.25, Cases: 2, Score: 0.05, Right: 0.5},
		{Low: 0.25, High: 0.5, Cases: 1, Score: 0.3},
		{Low: 0.5, High: 0.75, Cases: 2, Score: 0.525, Right: 0.5},
		{Low: 0.75, High: 1, Cases: 2, Score: 0.875, Right: 1},
	}
	got := stat.Bins(scores, right, 4)
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("Bins: (-want +got)\n%s", diff)
	}
	// (2·.45 + 1·.3 + 2·.025 + 2·.125) / 7
	if ece := stat.ECE(got); !near(ece, 0.2143) {
		t.Errorf("ECE = %v, want 0.2143", ece)
	}
	// (0 + .81 + .09 + .25 + .3025 + .0625 + 0) / 7
	if ece := stat.ECE(stat.Bins(nil, nil, 10)); ece != 0 {
		t.Errorf("ECE of nothing = %v", ece)
	}
}

// TestBinsAtTheEdges checks that a score at the lower edge of a bin is in that bin, also if n·score
// is rounded to the wrong side.
func TestBinsAtTheEdges(t *testing.T) {
	for _, n := range []int{3, 7, 10, 15, 20, 49} {
		for i := range n {
			score := float64(i) / float64(n)
			if b := stat.Bins([]float64{score}, []bool{true}, n)[i]; b.Cases != 1 {
				t.Errorf("of %d bins, that from %v does not have it", n, score)
			}
		}
	}
}

// TestPublishedECE compares with the example of TorchMetrics' documentation, BinaryCalibrationError
// with two bins: 0.29.
func TestPublishedECE(t *testing.T) {
	// (2·|.25-0| + 3·|.68333-1|) / 5
	bins := stat.Bins([]float64{0.25, 0.25, 0.55, 0.75, 0.75}, []bool{false, false, true, true, true}, 2)
	if ece := stat.ECE(bins); !near(ece, 0.29) {
		t.Errorf("ECE = %v, want 0.2900", ece)
	}
}

// TestPanics checks the panics on programming errors.
func TestPanics(t *testing.T) {
	tests := map[string]func(){
		"runs of other cases":  func() { stat.Paired([]float64{1}, nil) },
		"no bins":              func() { stat.Bins(nil, nil, 0) },
		"a score out of range": func() { stat.Bins([]float64{1.5}, []bool{true}, 2) },
		"a score that is none": func() { stat.Bins([]float64{math.NaN()}, []bool{true}, 2) },
	}
	for name, call := range tests {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

// TestBoundsHoldTheirFigure checks that bounds contain their figure to the last digit. Sums of
// equal numbers can differ by their order.
func TestBoundsHoldTheirFigure(t *testing.T) {
	for _, x := range []float64{0.1, 0.2, 0.7, 1.0 / 3} {
		for n := 1; n < 60; n += 7 {
			xs := slices.Repeat([]float64{x}, n)
			for _, i := range []stat.Interval{stat.Bootstrap(xs), stat.BootstrapPercentile(xs, 95)} {
				if i.Low > i.Mean || i.High < i.Mean {
					t.Errorf("%d times %v: %+v", n, x, i)
				}
			}
		}
	}
}
