package tensor

import "testing"

func init() {
	forms = append(forms, form{"portable", func(t testing.TB) { set(t, &hasNEON, false) }})
}
