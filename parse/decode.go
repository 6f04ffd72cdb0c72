package parse

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/visible"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// decode converts bytes to the text of a source.
func decode(data []byte) (string, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		data = data[3:]
	case bytes.HasPrefix(data, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(data, []byte("\x00\x00\xfe\xff")):
		return "", fmt.Errorf("the text is UTF-32, want UTF-8: %w", ErrEncoding)
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return decodeUTF16(data[2:], false)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return decodeUTF16(data[2:], true)
	}
	if name := signature(data); name != "" {
		return "", fmt.Errorf("%s is not supported yet: %w", name, ErrBinary)
	}
	if why := notText(data); why != "" {
		return "", fmt.Errorf("it looks like binary data (%s): %w", why, ErrBinary)
	}
	if iso2022(data) {
		return "", fmt.Errorf("the text is ISO-2022, want UTF-8: %w", ErrEncoding)
	}
	if utf8.Valid(data) {
		return tidy(string(data)), nil
	}
	return decodeLegacy(data)
}

func decodeUTF16(data []byte, bigEndian bool) (string, error) {
	if len(data)%2 != 0 {
		return "", fmt.Errorf("the text starts as UTF-16 but has an odd number of bytes: %w", ErrEncoding)
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		lo, hi := data[2*i], data[2*i+1]
		if bigEndian {
			lo, hi = hi, lo
		}
		units[i] = uint16(hi)<<8 | uint16(lo)
	}
	for i := 0; i < len(units); i++ {
		if !utf16.IsSurrogate(rune(units[i])) {
			continue
		}
		if i+1 == len(units) || utf16.DecodeRune(rune(units[i]), rune(units[i+1])) == unicode.ReplacementChar {
			return "", fmt.Errorf("the text starts as UTF-16 but is not at byte %d: %w", 2*i+2, ErrEncoding)
		}
		i++
	}
	text := string(utf16.Decode(units))
	if strings.Contains(text, "\x00") {
		return "", fmt.Errorf("it looks like binary data (zero bytes): %w", ErrBinary)
	}
	return tidy(text), nil
}

// signatures are the first bytes of unsupported formats that users often ingest.
var signatures = []struct{ prefix, name string }{
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "the old Microsoft Office format (DOC, XLS, PPT)"},
	{"\x7fELF", "an executable"},
	{"MZ\x90\x00", "an executable"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"\x28\xb5\x2f\xfd", "Zstandard"},
	{"\xfd7zXZ\x00", "xz"},
}

// zipSignature is the name of ZIP archives that are not documents.
const zipSignature = "a ZIP archive"

// signature returns the name of the format that data's first bytes indicate, or "".
func signature(data []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(data, []byte(s.prefix)) {
			return s.name
		}
	}
	if !bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		return ""
	}
	// A ZIP archive lists its entries in clear text. The first few distinguish the formats based on
	// it.
	head := data[:min(len(data), 8<<10)]
	for _, z := range []struct{ entry, name string }{
		{"word/", "DOCX"},
		{"xl/", "XLSX"},
		{"ppt/", "PPTX"},
		{"application/vnd.oasis.opendocument", "an OpenDocument file of a kind other than text, spreadsheet, presentation and drawing"},
	} {
		if bytes.Contains(head, []byte(z.entry)) {
			return z.name
		}
	}
	return zipSignature
}

// notText returns the reason why data is not text, or "".
func notText(data []byte) string {
	if bytes.IndexByte(data, 0) >= 0 {
		return "zero bytes"
	}
	head := data[:min(len(data), 64<<10)]
	control := 0
	for _, c := range head {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\v' && c != 0x1b && c != '\b' {
			control++
		}
	}
	if control > 8 && control*50 > len(head) {
		return "control characters"
	}
	return ""
}

// iso2022 reports whether data switches to a character set of several bytes, as Japanese, Korean and
// Chinese mail does. Every byte is then one of ASCII.
//
// Source: ECMA-35, "Character Code Structure and Extension Techniques", 14.3.2.
func iso2022(data []byte) bool {
	for _, designation := range []string{"\x1b$@", "\x1b$A", "\x1b$B", "\x1b$(", "\x1b$)"} {
		if bytes.Contains(data, []byte(designation)) {
			return true
		}
	}
	return false
}

// decodeLegacy decodes text that is not UTF-8. It supports Windows-1252, the most common legacy
// encoding, if the text is very unlikely to be anything else.
func decodeLegacy(data []byte) (string, error) {
	at := firstInvalid(data)
	line := 1 + bytes.Count(data[:at], []byte("\n"))
	if charset := declaredCharset(data); charset != "" {
		if text, ok := decodeDeclared(data, charset); ok {
			return tidy(text), nil
		}
		return "", fmt.Errorf("the text declares the encoding %q, want UTF-8: %w", charset, ErrEncoding)
	}
	if !isWindows1252(data) {
		return "", fmt.Errorf("the text is not UTF-8 (byte %d, line %d): %w", at, line, ErrEncoding)
	}
	text, err := charmap.Windows1252.NewDecoder().Bytes(data)
	if err != nil {
		return "", fmt.Errorf("the text is not UTF-8 (byte %d, line %d) nor Windows-1252: %w: %w", at, line, ErrEncoding, err)
	}
	return tidy(string(text)), nil
}

func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

// charsetDeclarations find the name of the encoding at the start of a text: of XML, of an HTML
// head, of a source file for an editor, and of a LaTeX preamble.
//
// Source: WHATWG HTML, 4.2.5.4; PEP 263; "inputenc" of the LaTeX base.
var charsetDeclarations = []*lazyregexp.Regexp{
	lazyregexp.New(`^\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)`),
	lazyregexp.New(`(?i)<meta\s[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)`),
	lazyregexp.New(`^(?:[^\n]*\n)?[^\n]{0,3}(?:-\*-|#|//|/\*|;|--|%)[^\n]*?coding[:=][ \t]*([\w.-]+)`),
	lazyregexp.New(`(?m)^[^%\n]*\\usepackage\[([\w.-]+)\]\{inputenc\}`),
}

// declaredCharset returns the name of the encoding that the start of data declares, or "". UTF-8
// is no answer, because the data is not UTF-8.
func declaredCharset(data []byte) string {
	start := string(data[:min(len(data), 4<<10)])
	for _, re := range charsetDeclarations {
		if m := re.FindStringSubmatch(start); m != nil {
			name := strings.ToLower(m[1])
			if name == "utf-8" || name == "utf8" || name == "us-ascii" || name == "ascii" {
				return ""
			}
			return name
		}
	}
	return ""
}

// charsetNames are the names of encodings that editors and LaTeX use and HTML does not.
var charsetNames = map[string]string{
	"latin-1": "iso-8859-1", "latin-2": "iso-8859-2", "latin9": "iso-8859-15", "latin-9": "iso-8859-15", "ansinew": "windows-1252",
	"cp1250": "windows-1250", "cp1251": "windows-1251", "cp1252": "windows-1252", "applemac": "macintosh", "koi8r": "koi8-r",
	"cp932": "shift_jis", "cp936": "gbk", "cp949": "euc-kr", "cp950": "big5", "sjis": "shift_jis", "eucjp": "euc-jp", "euckr": "euc-kr",
}

// decodeDeclared decodes data in the encoding that it declares. It returns false if the encoding is
// unknown or data is not in it.
func decodeDeclared(data []byte, charset string) (string, bool) {
	for _, suffix := range []string{"-unix", "-dos", "-mac"} {
		charset = strings.TrimSuffix(charset, suffix)
	}
	e, err := htmlindex.Get(cmp.Or(charsetNames[charset], charset))
	if err != nil {
		return "", false
	}
	text, err := e.NewDecoder().Bytes(data)
	if err != nil || bytes.ContainsRune(text, utf8.RuneError) || bytes.ContainsFunc(text, isC1) {
		return "", false
	}
	return string(text), true
}

// isC1 reports whether r is a control character that only a wrong decoding produces.
func isC1(r rune) bool { return 0x80 <= r && r < 0xa0 }

// isWindows1252 reports whether data looks like Western European prose in Windows-1252. Every byte
// beyond ASCII must be typography or a letter of those languages. At most two such letters stand
// together, in a word with letters of ASCII, unless the letter is a word of its own such as "à". Such
// bytes must be rare. None may form UTF-8 sequences, because the data would then rather be UTF-8
// with an error.
func isWindows1252(data []byte) bool {
	const (
		letters    = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜßàáâãäåæçèéêëìíîïñòóôõöøùúûüŒœŠšŽž"
		words      = "ÀÁÅÈÉÍÒÓÔÖØàáåèéíòóôöø"
		typography = "‘’“”–—…•™«»°©®§±·£€¿¡º½¼²³µ×\u00a0"
	)
	high, run, inWord := 0, 0, 0 // letters beyond ASCII: together, and in the word
	ascii := false               // the word has letters of ASCII
	for i := 0; i <= len(data); i++ {
		if i < len(data) && isWordByte(data[i]) {
			ascii, run = true, 0
			continue
		}
		var r rune
		if i < len(data) && data[i] >= utf8.RuneSelf {
			high++
			if r, n := utf8.DecodeRune(data[i:]); n > 1 && r != utf8.RuneError {
				return false
			}
			r = charmap.Windows1252.DecodeByte(data[i])
		}
		switch {
		case r != 0 && strings.ContainsRune(letters, r):
			if run, inWord = run+1, inWord+1; run > 2 {
				return false
			}
			continue
		case r != 0 && !strings.ContainsRune(typography, r):
			return false
		case inWord > 0 && !ascii && !(inWord == 1 && strings.ContainsRune(words, charmap.Windows1252.DecodeByte(data[i-1]))):
			return false
		}
		run, inWord, ascii = 0, 0, false
	}
	return high*5 <= len(data)
}

func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// tidy converts line ends to "\n" and removes invisible characters.
func tidy(text string) string {
	if strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(text, "\r\n", "\n")
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return visible.Text(text)
}
