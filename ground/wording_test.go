package ground

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkDiffers compares a claim with 200 sentences that were prepared once.
func BenchmarkDiffers(b *testing.B) {
	var sentences []string
	for i := range 200 {
		sentences = append(sentences, fmt.Sprintf("The quince tree by the old mill was planted in %d by its first miller.", 1700+i))
	}
	claim := "The quince tree by the old mill was planted in 1804 by its first miller."
	b.Run("texts", func(b *testing.B) {
		for b.Loop() {
			for _, s := range sentences {
				Differ(claim, s)
			}
		}
	})
	b.Run("wordings", func(b *testing.B) {
		prepared := make([]Wording, len(sentences))
		for i, s := range sentences {
			prepared[i] = NewWording(s)
		}
		for b.Loop() {
			w := NewWording(claim)
			for _, s := range prepared {
				w.Differs(s)
			}
		}
	})
}

func BenchmarkFold(b *testing.B) {
	text := strings.Repeat("The “quince” tree by the old mill was planted in 1804 by its first miller.\n", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		fold(text)
	}
}
