package bedrock

import (
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/types"
)

// FuzzLocate checks that a citation's span consists of whole characters and contains the cited
// words.
func FuzzLocate(f *testing.F) {
	f.Add("Thirty days. 漢字 😀", "漢字", int32(13), int32(14), 0)
	f.Add("é😀x", "x", int32(-1), int32(1<<30), 2)
	f.Add("", "", int32(0), int32(0), 0)
	f.Fuzz(func(t *testing.T, text, words string, start, end int32, from int) {
		if !utf8.ValidString(text) || from < 0 || from > len(text) {
			return
		}
		part := &types.GeneratedResponsePart{TextResponsePart: &types.TextResponsePart{Text: &words, Span: &types.Span{Start: &start, End: &end}}}
		s, e, ok := locate(text, part, from)
		if ok && (s < 0 || e > len(text) || s >= e || text[s:e] != words) || !ok && (s != 0 || e != 0) {
			t.Errorf("%q of %q at %d to %d: [%d, %d), %v", words, text, start, end, s, e, ok)
		}
	})
}
