package tensor

import "testing"

func init() {
	if hasAVX512 && hasVNNI {
		forms = append(forms, form{"avx512 without vnni", func(t testing.TB) { set(t, &hasVNNI, false) }})
	}
	if hasAVX512 {
		forms = append(forms, form{"avx2", func(t testing.TB) { set(t, &hasAVX512, false) }})
	}
	if hasAVX2 {
		forms = append(forms, form{"portable", func(t testing.TB) { set(t, &hasAVX512, false); set(t, &hasAVX2, false) }})
	}
}
