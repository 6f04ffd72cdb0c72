package lazyregexp

import "testing"

func TestNew(t *testing.T) {
	r := New(`a+`)
	if got := r.ReplaceAllString("caat", "u"); got != "cut" {
		t.Errorf("ReplaceAllString = %q, want %q", got, "cut")
	}
	bad := New(`(`) // compiled at its first use
	defer func() {
		if recover() == nil {
			t.Error("the first use of a pattern that does not parse does not panic")
		}
	}()
	bad.MatchString("")
}
