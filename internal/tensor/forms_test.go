//go:build amd64 || arm64

package tensor

import "testing"

func set(t testing.TB, to *bool, value bool) {
	was := *to
	*to = value
	t.Cleanup(func() { *to = was })
}
