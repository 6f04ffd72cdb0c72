package local

import (
	"strings"
	"unicode/utf8"
)

// fragments are the parts of the lines in the tokenizer's fixture.
var fragments = []string{
	"The quick brown fox", "jumps over", "the lazy dog.", "Unbelievably,", "antidisestablishmentarianism", "it's", "don't", "e.g.", "1,234.56", "2026-11-20T10:15:00Z",
	"3rd-party", "naïve", "café", "Ångström", "Żółć", "İstanbul", "ſtraße", "STRASSE", "ﬁne", "Ⅻ", "½", "ǅungla", "ΟΔΟΣ", "ΆΈΉ", "Привет, мир!", "ЁЙ",
	"Việt Nam", "Tiếng", "cafe\u0301", "n\u0303", "q\u0323\u0307", "a\u0300\u0301\u0302\u0303", "\u0301", "Z\u0351\u036b\u0343A\u0321L\u0320G\u0322O", "शिक्षा", "ภาษาไทย", "العَرَبِيَّة", "עִבְרִית", "ქართული", "Հայերեն",
	"中文测试", "日本語のテキスト", "カタカナ", "ﾊﾝｶｸ", "한국어", "각", "鿿", "㐀", "𠀀", "𪛟𫜴", "\U0002b820", "\U0002b920", "豈", "，。", "「」", "ｆｕｌｌ", "３",
	"😀", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "☃", "✓", "→", "≠", "∑", "€", "£", "§", "©", "™", "°C", "…", "—", "–", "“quoted”", "‘x’", "«»", "•", "·", "¿qué?", "٪",
	"func main() { fmt.Println(\"hi\") }", "if (a != b && c >= 0x1F) {", "os.Open", "file_name", "snake_case_name", "camelCaseName", "E1042", "C:\\Windows\\System32", "/usr/bin/env", "https://example.com/a?b=c&d=%20#e",
	"user@example.com", "--flag=value", "<div class=\"x\">", "&amp;", "SELECT * FROM t WHERE id=?;", "a[i]++", "x := <-ch", "// comment", "#include <stdio.h>", "$HOME", "`code`", "~", "^", "\\n", "{}", "[]", "()", "::", "->", "=>", "...",
	"[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[unused1]", "[cls]", "[ SEP ]", "[SEP][SEP]", "x[SEP]y", "[[SEP]]", "##ing", "##", "[MASK",
	"\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028", "\u0085", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u202e", "\u0000", "\u0007", "\u001b[31m", "\u007f", "\ufffd", "\ue000", "\U000f0000", "\u180e", "\u2060",
	"𝐀𝒷𝕔", "𐐀𐐨", "ꟋꟜ", "\U00016ea0", "\U0001e900", "\U00011938", "ሀሁ", "ꙮ", "᠊", "؛", "।", "\u302e", "\u309a", "가\u11a8", "ᄒ", "Å", "ẛ̣", "ﷺ", "ß", "ŉ", "ƛ",
	strings.Repeat("a", 99), strings.Repeat("b", 100), strings.Repeat("c", 101), strings.Repeat("é", 100), strings.Repeat("é", 101), strings.Repeat("supercalifragilistic", 7),
}

// sequenceOf is a linear congruential generator (Knuth's MMIX). Its lines are the same on every
// machine and with every version of Go.
type sequenceOf uint64

func (s *sequenceOf) next(n int) int {
	*s = *s*6364136223846793005 + 1442695040888963407
	return int(uint64(*s) >> 33 % uint64(n))
}

// mixedLines returns n lines of mixed text: fragments, and in one of ten cases random characters or
// pieces of words.
func mixedLines(n int) []string {
	random := sequenceOf(4)
	lines := make([]string, n)
	for i := range lines {
		var line strings.Builder
		for range 1 + random.next(12) {
			switch random.next(10) {
			case 0:
				line.WriteRune(randomRune(&random))
			case 1:
				word := fragments[random.next(len(fragments))]
				runes := []rune(word)
				from := random.next(len(runes))
				line.WriteString(string(runes[from : from+random.next(len(runes)-from)+1]))
			default:
				line.WriteString(fragments[random.next(len(fragments))])
			}
			if random.next(4) > 0 {
				line.WriteByte(' ')
			}
		}
		lines[i] = line.String()
	}
	return lines
}

// randomRune returns a random character. Half of them are among the first 12,288.
func randomRune(random *sequenceOf) rune {
	most := utf8.MaxRune + 1
	if random.next(2) == 0 {
		most = 0x3000
	}
	for {
		if r := rune(random.next(int(most))); utf8.ValidRune(r) {
			return r
		}
	}
}
