package parse

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/visible"
	"golang.org/x/text/encoding/charmap"
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
	if why := binary(data); why != "" {
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
	{"%PDF-", "PDF"},
	{"{\\rtf", "RTF"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "the old Microsoft Office format (DOC, XLS, PPT, MSG)"},
	{"\x89PNG\r\n", "a PNG image"},
	{"\xff\xd8\xff", "a JPEG image"},
	{"GIF8", "a GIF image"},
	{"\x1f\x8b", "gzip"},
	{"7z\xbc\xaf\x27\x1c", "7-Zip"},
	{"\x7fELF", "an executable"},
	{"MZ\x90\x00", "an executable"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"\x28\xb5\x2f\xfd", "Zstandard"},
	{"BZh9", "bzip2"},
	{"\xfd7zXZ\x00", "xz"},
}

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
		{"application/epub+zip", "EPUB"},
		{"application/vnd.oasis.opendocument", "OpenDocument (ODT, ODS, ODP)"},
	} {
		if bytes.Contains(head, []byte(z.entry)) {
			return z.name
		}
	}
	return "a ZIP archive"
}

// binary returns the reason why data is not text, or "".
func binary(data []byte) string {
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

// declaredCharset returns the charset that an HTML head or an XML declaration names, or "" if it is
// compatible with Windows-1252.
func declaredCharset(data []byte) string {
	head := bytes.ToLower(data[:min(len(data), 2<<10)])
	name := []byte("charset=")
	if bytes.HasPrefix(bytes.TrimSpace(head), []byte("<?xml")) && bytes.Contains(head, []byte("encoding=")) {
		name = []byte("encoding=")
	}
	i := bytes.Index(head, name)
	if i < 0 {
		return ""
	}
	rest := bytes.TrimLeft(head[i+len(name):], "\"' ")
	end := bytes.IndexAny(rest, "\"' />;\n")
	if end < 0 {
		end = len(rest)
	}
	switch name := string(rest[:end]); name {
	case "windows-1252", "iso-8859-1", "latin1", "us-ascii", "ascii", "utf-8", "utf8", "cp1252":
		return ""
	default:
		return name
	}
}

// isWindows1252 reports whether data looks like Western European prose in Windows-1252. Every byte
// beyond ASCII must be typography or a letter of those languages inside a word, and such bytes must
// be rare. None may form UTF-8 sequences, because the data would then rather be UTF-8 with an
// error.
func isWindows1252(data []byte) bool {
	const (
		letters    = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜßàáâãäåæçèéêëìíîïñòóôõöøùúûüŒœŠšŽž"
		typography = "‘’“”–—…•™«»°©®§±·£€¿¡º½¼²³µ×\u00a0"
	)
	high := 0
	for i := 0; i < len(data); i++ {
		if data[i] < utf8.RuneSelf {
			continue
		}
		high++
		if r, n := utf8.DecodeRune(data[i:]); n > 1 && r != utf8.RuneError {
			return false
		}
		r := charmap.Windows1252.DecodeByte(data[i])
		switch {
		case strings.ContainsRune(typography, r):
		case !strings.ContainsRune(letters, r):
			return false
		case !(i > 0 && isWordByte(data[i-1])) && !(i+1 < len(data) && isWordByte(data[i+1])):
			return false
		}
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
