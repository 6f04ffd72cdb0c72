package eval

import "testing"

func TestIterations(t *testing.T) {
	for _, tt := range []struct {
		paths []string
		want  float64
	}{
		{nil, 0},
		{[]string{"search"}, 1},
		{[]string{"round[0]/search", "round[1]/search"}, 2},
		{[]string{"stage[0]/sub[0]/round[0]/search", "stage[0]/sub[1]/round[0]/search", "stage[0]/sub[1]/round[1]/search"}, 1.5},
		{[]string{"search", "corrective/stage[0]/sub[0]/search", "corrective/stage[1]/sub[0]/search", "corrective/stage[1]/sub[0]/round[1]/search"}, 4.0 / 3},
	} {
		if got := Iterations(tt.paths); got != tt.want {
			t.Errorf("Iterations(%q) = %v, want %v", tt.paths, got, tt.want)
		}
	}
}
