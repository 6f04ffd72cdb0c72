package parse

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
)

// TestLegacyEncodings checks text in encodings other than UTF-8: what names its encoding, and
// Western European prose.
func TestLegacyEncodings(t *testing.T) {
	tests := []struct{ name, charset, text string }{
		{"a.txt", "windows-1252", "Un café à Genève, c’est-à-dire dans la ville où l’été dure longtemps."},
		{"a.txt", "windows-1252", "Gemäß § 5 ist der Spaß süß. Möglich ist es bloß gemäß der Übung."},
		{"a.txt", "windows-1252", "È vero: città e libertà è tutto."},
		{"a.csv", "windows-1252", "Ort;Straße\nKöln;Äußere Kanalstraße\nDüsseldorf;Königsallee\n"},
		{"a.html", "shift_jis", "<html><head><meta charset=\"Shift_JIS\"><title>題</title></head><body><p>こんにちは世界</p></body></html>"},
		{"a.html", "windows-1251", "<html><head><meta http-equiv='Content-Type' content='text/html; charset=windows-1251'></head><body><p>Привет, мир</p></body></html>"},
		{"a.html", "euc-kr", "<html><head><META CHARSET=euc-kr></head><body><p>안녕하세요</p></body></html>"},
		{"a.py", "koi8-r", "#!/usr/bin/python\n# -*- coding: koi8-r -*-\n# Привет, мир\nx = 1\n"},
		{"a.tex", "iso-8859-2", "\\documentclass{article}\n\\usepackage[latin2]{inputenc}\n\\begin{document}\nZażółć gęślą jaźń.\n\\end{document}\n"},
		{"a.xml", "iso-8859-5", "<?xml version=\"1.0\" encoding=\"iso-8859-5\"?>\n<article><title>Привет</title><para>Мир и труд</para></article>"},
	}
	for _, tt := range tests {
		e, err := htmlindex.Get(tt.charset)
		if err != nil {
			t.Fatal(err)
		}
		data, err := e.NewEncoder().String(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Parse(context.Background(), Input{Name: tt.name, Data: []byte(data)})
		if err != nil {
			t.Errorf("%s in %s: %v", tt.name, tt.charset, err)
			continue
		}
		want := parseString(t, tt.name, tt.text)
		if doc.Text != want.Text || strings.ContainsRune(doc.Text, '\uFFFD') {
			t.Errorf("%s in %s: got %q, want %q", tt.name, tt.charset, doc.Text, want.Text)
		}
	}
}

// TestUnknownEncodings checks that text in an encoding that it does not name is refused if it is
// not Western European.
func TestUnknownEncodings(t *testing.T) {
	tests := []struct{ charset, text string }{
		{"windows-1251", "Hello Привет, мир and again hello to all the others."},
		{"windows-1251", "I и a а long text with the words и, о, у and я in it."},
		{"iso-8859-2", "This is Polish: zażółć gęślą jaźń, and more of it follows here."},
		{"windows-1253", "A text with Greek: Καλημέρα κόσμε, and more of it follows here."},
		{"shift_jis", "A text with some Japanese: こんにちは世界, and more of it follows here."},
		{"gbk", "A text with some Chinese: 你好世界, and more of it follows here, of course."},
		{"big5", "A text with some Chinese: 你好世界, and more of it follows here, of course."},
		{"euc-kr", "A text with some Korean: 안녕하세요, and more of it follows here, of course."},
		{"windows-1254", "A text in Turkish: İstanbul'da yaşıyoruz ve çalışıyoruz, değil mi."},
	}
	for _, tt := range tests {
		e, err := htmlindex.Get(tt.charset)
		if err != nil {
			t.Fatal(err)
		}
		data, err := e.NewEncoder().String(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Parse(context.Background(), Input{Name: "a.txt", Data: []byte(data)})
		if !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: got %q, error %v; want ErrEncoding", tt.charset, doc.Text, err)
		}
	}
}

// TestPlainTextMarks checks that lines in capitals that start with a mark are not headings.
func TestPlainTextMarks(t *testing.T) {
	for _, line := range []string{"-----BEGIN PGP PUBLIC KEY BLOCK-----", "@_OTHER_VARIABLES_@", "// EXTRAS:", "%COMMENT SECTION", "$DATA"} {
		doc := parseString(t, "a.txt", "Some text.\n\n"+line+"\n\nMore text follows here.\n")
		if got := doc.Blocks[1].Kind; got != Paragraph {
			t.Errorf("%q is a %s", line, got)
		}
	}
	if doc := parseString(t, "a.txt", "Some text.\n\nNOTES\n\nMore text follows here.\n"); doc.Blocks[1].Kind != Heading {
		t.Errorf("NOTES is a %s", doc.Blocks[1].Kind)
	}
}

// TestMailCharset checks that the text of a mail is read in the encoding that it declares.
func TestMailCharset(t *testing.T) {
	tests := []struct{ charset, text string }{
		{"iso-8859-1", "Señor Nuñez: año, mañana, niño, pequeño. "},
		{"iso-8859-2", "Árvíztűrő tükörfúrógép, kőszén, őrült. "},
		{"windows-1250", "Příliš žluťoučký kůň úpěl ďábelské ódy. "},
		{"iso-8859-15", "Das kostet 5 € für alle Größen. "},
		{"windows-1254", "İstanbul'da yaşıyoruz ve çalışıyoruz. "},
		{"windows-1257", "Žąsų sūrių ėdimas, šįmet įvyko. "},
		{"iso-8859-4", "Kõige ilusam õhtu šokolaadiga žürii ees. "},
	}
	for _, tt := range tests {
		e, err := htmlindex.Get(tt.charset)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat(tt.text, 5)
		body, err := e.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		data := "From: a@b.c\nTo: d@e.f\nSubject: s\nMIME-Version: 1.0\nContent-Type: text/plain; charset=" + tt.charset + "\nContent-Transfer-Encoding: 8bit\n\n" + body + "\n"
		doc, err := Parse(context.Background(), Input{Name: "a.eml", Data: []byte(data)})
		if err != nil || !strings.Contains(doc.Text, strings.TrimSpace(text)) {
			t.Errorf("%s: got %q, error %v", tt.charset, doc.Text, err)
		}
	}
}
