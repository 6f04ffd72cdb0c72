package strategy

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestModeLimits(t *testing.T) {
	tests := []struct {
		mode Mode
		in   Limits
		want Limits
	}{
		{Normal, Limits{}, Limits{}},
		{Normal, Limits{Iterations: 7, Keep: 3}, Limits{Iterations: 7, Keep: 3}},
		{Quick, Limits{}, Limits{Iterations: 2, Seconds: 6, Candidates: 10}},
		{Quick, Limits{Iterations: 1, Candidates: 5, Keep: 5, Floor: 0.4}, Limits{Iterations: 1, Seconds: 6, Candidates: 3, Keep: 5, Floor: 0.4}},
		{Thorough, Limits{}, Limits{Iterations: 8, Seconds: 24, Candidates: 40}},
		{Thorough, Limits{Iterations: 3, Parts: 2, Wall: time.Second}, Limits{Iterations: 6, Seconds: 24, Candidates: 40, Parts: 2, Wall: time.Second}},
	}
	for _, test := range tests {
		if got := test.mode.Limits(test.in); got != test.want {
			t.Errorf("%q scales %+v to %+v, want %+v", test.mode, test.in, got, test.want)
		}
	}
}

func TestModeSettings(t *testing.T) {
	if got := Normal.Settings(Settings{}); got != (Settings{}) {
		t.Errorf("the normal mode sets %+v", got)
	}
	d := defaultSettings
	quick, thorough := Quick.Settings(Settings{}), Thorough.Settings(Settings{})
	want := Settings{
		Auto:     AutoSettings{Escalate: "corrective"},
		CRAG:     CRAGSettings{Correct: 0.7, Incorrect: 0.3, Relevant: 2, Web: 3, WebScore: 0.8},
		Self:     SelfSettings{Iterations: 2},
		Adaptive: AdaptiveSettings{Simple: 2, Moderate: 3, Rounds: 1, Complex: 2},
		Fusion:   FusionSettings{Queries: 2},
		Judge:    RoundSettings{Rounds: 2},
		Reflect:  ReflectSettings{Rounds: 2, Coverage: 0.8},
		React:    ReactSettings{Steps: 4, Compress: 3, Invalid: 3},
		Multihop: MultihopSettings{Hops: 3},
		Verify:   VerifySettings{Grounding: 0.5, Relevance: 0.1},
	}
	if diff := cmp.Diff(want, quick); diff != "" {
		t.Errorf("quick (-want +got):\n%s", diff)
	}
	// Thorough scales all that quick scales, and scales nothing down.
	q, n, th := reflect.ValueOf(quick), reflect.ValueOf(d), reflect.ValueOf(thorough)
	for i := range n.NumField() {
		for j := range n.Field(i).NumField() {
			name := n.Type().Field(i).Name + "." + n.Field(i).Type().Field(j).Name
			if n.Field(i).Field(j).Kind() != reflect.Int {
				if !q.Field(i).Field(j).Equal(n.Field(i).Field(j)) || !th.Field(i).Field(j).Equal(n.Field(i).Field(j)) {
					t.Errorf("the threshold %s is scaled", name)
				}
				continue
			}
			less, normal, more := q.Field(i).Field(j).Int(), n.Field(i).Field(j).Int(), th.Field(i).Field(j).Int()
			if scaled := less != normal; scaled != (more == 2*normal) || less < 1 {
				t.Errorf("%s is %d, quick %d, thorough %d", name, normal, less, more)
			}
		}
	}
}

func TestModeWall(t *testing.T) {
	for mode, want := range map[Mode]time.Duration{Quick: 6 * time.Second, Normal: 12 * time.Second, Thorough: 24 * time.Second} {
		if got := mode.Wall(12 * time.Second); got != want {
			t.Errorf("%q: %v, want %v", mode, got, want)
		}
	}
}

func TestModeCheck(t *testing.T) {
	for _, m := range append(Modes(), Normal) {
		if err := m.Check(); err != nil {
			t.Errorf("%q: %v", m, err)
		}
	}
	if err := Mode("slow").Check(); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("an unknown mode: %v", err)
	}
}

// TestOver checks that set fields are kept and unset ones are taken from below.
func TestOver(t *testing.T) {
	below := Settings{Self: SelfSettings{Iterations: 5}, CRAG: CRAGSettings{Correct: 0.9}}
	got := Settings{CRAG: CRAGSettings{Correct: 0.8}}.Over(below)
	if want := (Settings{Self: SelfSettings{Iterations: 5}, CRAG: CRAGSettings{Correct: 0.8}}); got != want {
		t.Errorf("settings %+v, want %+v", got, want)
	}
	limits := Limits{Keep: 2}.Over(Limits{Keep: 9, Floor: 0.3, Wall: time.Second})
	if want := (Limits{Keep: 2, Floor: 0.3, Wall: time.Second}); limits != want {
		t.Errorf("limits %+v, want %+v", limits, want)
	}
}

// TestOverHasEveryField checks that Over covers every field of settings and limits.
func TestOverHasEveryField(t *testing.T) {
	var settings Settings
	var limits Limits
	for _, v := range []reflect.Value{reflect.ValueOf(&settings).Elem(), reflect.ValueOf(&limits).Elem()} {
		fill(v)
	}
	if diff := cmp.Diff(settings, Settings{}.Over(settings)); diff != "" {
		t.Errorf("settings (-set +over none):\n%s", diff)
	}
	if diff := cmp.Diff(limits, Limits{}.Over(limits)); diff != "" {
		t.Errorf("limits (-set +over none):\n%s", diff)
	}
}

// fill sets every field within v to 1.
func fill(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case v.CanInt():
		v.SetInt(1)
	case v.CanFloat():
		v.SetFloat(1)
	}
}
