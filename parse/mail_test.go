package parse

import (
	"bytes"
	"encoding/base64"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// mailOf is a message with an attachment, an attached message, a logo and a signature.
func mailOf() string {
	return strings.ReplaceAll(`From: =?utf-8?q?J=C3=B6rg?= <joerg@example.com>
To: Ada <ada@example.com>, bob@example.com
Cc: carol@example.com
Date: Tue, 2 Jan 2024 10:20:30 +0100
Subject: =?utf-8?b?w5xiZXI=?= the budget
Message-ID: <3@example.com>
In-Reply-To: <2@example.com>
References: <1@example.com>
 <2@example.com>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="x"

--x
Content-Type: multipart/alternative; boundary="y"

--y
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

plain text, caf=E9

--y
Content-Type: text/html; charset=utf-8

<html><head><title>t</title></head><body><p>The <b>budget</b> is 5 €.</p><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table><blockquote>quoted reply</blockquote></body></html>
--y--
--x
Content-Type: text/csv; name="figures.csv"
Content-Disposition: attachment; filename="figures.csv"
Content-Transfer-Encoding: base64

`+base64.StdEncoding.EncodeToString([]byte("name,value\nrent,5\n"))+`
--x
Content-Type: message/rfc822

From: dave@example.com
Subject: Inner
Date: Mon, 1 Jan 2024 10:00:00 +0000

inner text
--x
Content-Type: image/png
Content-ID: <logo>
Content-Disposition: inline

logo
--x
Content-Type: application/pgp-signature; name=signature.asc

sig
--x--
`, "\n", "\r\n")
}

func TestEML(t *testing.T) {
	in := Input{Name: "a.eml", Data: []byte(mailOf())}
	doc, err := Parse(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := "From: Jörg <joerg@example.com>\nTo: Ada <ada@example.com>, bob@example.com\nCc: carol@example.com\nDate: Tue, 2 Jan 2024 10:20 +0100\nSubject: Über the budget\n\nThe budget is 5 €.\n\na | b\n1 | 2\n\nquoted reply"
	if doc.Text != want || doc.Type != "eml" || doc.Title != "Über the budget" {
		t.Errorf("%s %q: %s", doc.Type, doc.Title, cmp.Diff(want, doc.Text))
	}
	if len(doc.Anchors) != 0 {
		t.Errorf("a message has lines: %v", doc.Anchors)
	}
	metadata := assay.Metadata{
		"author": assay.StringValue("Jörg <joerg@example.com>"), "created": assay.TimeValue(time.Date(2024, 1, 2, 9, 20, 30, 0, time.UTC)),
		"to": assay.ListValue("Ada <ada@example.com>", "bob@example.com"), "cc": assay.ListValue("carol@example.com"),
		"message_id": assay.StringValue("3@example.com"), "in_reply_to": assay.StringValue("2@example.com"),
		"references": assay.ListValue("1@example.com", "2@example.com"), "thread": assay.StringValue("1@example.com"),
	}
	if diff := cmp.Diff(metadata, doc.Metadata); diff != "" {
		t.Errorf("metadata: %s", diff)
	}
	got := walked(t, in)
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], "\n")
	}
	if want := []string{": From: Jörg <joerg@example.com>", "figures.csv: name | value", "Inner.eml: From: dave@example.com"}; !slices.Equal(got, want) {
		t.Errorf("parts %q, want %q", got, want)
	}
}

func TestMailDetection(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a", "From: a@b.c\nTo: d@e.f\nSubject: x\n\ntext here\n", "eml"},
		{"a.eml", "Subject: x\n\ntext here\n", "eml"},
		{"a.txt", "From: here to there\n\nSubject: no\n", "text"},
		{"a.md", "From: a@b.c\nTo: d@e.f\nSubject: x\n\ntext\n", "markdown"},
		{"a.txt", "Note: from x\nTo: y\nplain line\nDate: z\n\ntext\n", "text"},
	} {
		doc, err := Parse(t.Context(), Input{Name: tt.name, Data: []byte(tt.text)})
		if err != nil || doc.Type != tt.want {
			t.Errorf("%s %q: %s, %v, want %s", tt.name, tt.text, doc.Type, err, tt.want)
		}
	}
}

func TestMbox(t *testing.T) {
	box := "From a@b.c Tue Jan  2 10:20:30 2024\nFrom: a@b.c\nSubject: First: one/two\nMessage-ID: <1@b.c>\n\nfirst text\n\nFrom here it goes on.\n\n>From the start.\n\n" +
		"From d@e.f Tue Jan  2 11:20:30 2024\nFrom: d@e.f\nSubject: Re: First\nMessage-ID: <2@b.c>\nIn-Reply-To: <1@b.c>\n\nsecond text\n"
	for _, text := range []string{box, strings.ReplaceAll(box, "\n", "\r\n")} {
		got := walked(t, Input{Name: "a.mbox", Data: []byte(text)})
		want := []string{": ", "00001 First: one-two.eml: From: a@b.c\nSubject: First: one/two\n\nfirst text\n\nFrom here it goes on.\n\nFrom the start.",
			"00002 Re: First.eml: From: d@e.f\nSubject: Re: First\n\nsecond text"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	threads := map[string]int{}
	if err := Walk(t.Context(), Input{Name: "a.mbox", Data: []byte(box)}, func(p Parsed) error {
		threads[p.Document.Metadata["thread"].String]++
		return p.Err
	}); err != nil {
		t.Fatal(err)
	}
	if threads["1@b.c"] != 2 {
		t.Errorf("threads %v", threads)
	}
}

// msgOf is a message of Outlook with an attachment and an attached message.
func msgOf(t testing.TB) []byte {
	submitted := uint64(time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC).Unix()*1e7 + 116444736000000000)
	inner := []node{
		msgFixed(24, map[uint32]uint64{0x00390040: submitted}),
		msgString("0037", "Inner"), msgString("0C1A", "Dave"), msgString("1000", "inner text"),
		{name: "__attach_version1.0_#00000000", children: []node{msgFixed(8, nil), msgString("3707", "deep.txt"), {name: "__substg1.0_37010102", data: []byte("deep text")}}},
	}
	return compoundOf(t, []node{
		msgFixed(32, map[uint32]uint64{0x00390040: submitted}),
		msgString("0037", "Über the budget"), msgString("0C1A", "Jörg"), msgString("5D01", "joerg@example.com"),
		msgString("1000", "plain text"), msgString("1035", "<3@example.com>"), msgString("1039", "<1@example.com> <2@example.com>"),
		{name: "__substg1.0_10130102", data: []byte("<html><body><p>The budget</p>" + strings.Repeat("<p>is large</p>", 400) + "</body></html>")},
		{name: "__recip_version1.0_#00000000", children: []node{msgFixed(8, map[uint32]uint64{0x0c150003: 1}), msgString("3001", "Ada"), msgString("39FE", "ada@example.com")}},
		{name: "__recip_version1.0_#00000001", children: []node{msgFixed(8, map[uint32]uint64{0x0c150003: 2}), msgString("3001", "Carol"), msgString("3003", "/o=Exchange/cn=carol")}},
		{name: "__attach_version1.0_#00000000", children: []node{msgFixed(8, nil), msgString("3707", "figures.csv"), msgString("370E", "text/csv"), {name: "__substg1.0_37010102", data: []byte("name,value\nrent,5\n")}}},
		{name: "__attach_version1.0_#00000001", children: []node{msgFixed(8, nil), {name: "__substg1.0_3701000D", children: inner}}},
	})
}

// update writes the files of testdata that are made here.
var update = flag.Bool("update", false, "write testdata")

func TestMSG(t *testing.T) {
	file := filepath.Join("testdata", "message.msg") // the tests of other packages need one
	if *update {
		if err := os.WriteFile(file, msgOf(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(file); err != nil || !bytes.Equal(data, msgOf(t)) {
		t.Errorf("%s is not the message below: %v; run this test with -update", file, err)
	}
	got := walked(t, Input{Name: "a.msg", Data: msgOf(t)})
	want := []string{
		": From: Jörg <joerg@example.com>\nTo: Ada <ada@example.com>\nCc: Carol\nDate: Tue, 2 Jan 2024 03:04 +0000\nSubject: Über the budget\n\nThe budget" + strings.Repeat("\n\nis large", 400),
		"figures.csv: name | value\nname: rent; value: 5",
		"Inner.eml: From: Dave\nDate: Tue, 2 Jan 2024 03:04 +0000\nSubject: Inner\n\ninner text",
		"Inner.eml!/deep.txt: deep text",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRTFDictionary(t *testing.T) {
	if len(rtfDictionary) != 207 {
		t.Errorf("the dictionary has %d bytes, want 207", len(rtfDictionary))
	}
	// The example of [MS-OXRTFCP], 3.1.1.
	data := []byte("\x2d\x00\x00\x00\x2b\x00\x00\x00\x4c\x5a\x46\x75\xf1\xc5\xc7\xa7\x03\x00\x0a\x00\x72\x63\x70\x67\x31\x32\x35\x42\x32\x0a\xf3\x20\x68\x65\x6c\x09\x00\x20\x62\x77\x05\xb0\x6c\x64\x7d\x0a\x80\x0f\xa0")
	text, err := decompressRTF(data)
	if want := "{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	for n := range data {
		_, _ = decompressRTF(data[:n])
	}
}

func TestHostileMail(t *testing.T) {
	nested := "Subject: x\nFrom: a\nTo: b\n"
	for i := range 2000 {
		b := strings.Repeat("b", 1+i%40) + string(rune('a'+i%26)) + strings.Repeat("c", i/40)
		nested += "Content-Type: multipart/mixed; boundary=" + b + "\n\n--" + b + "\n"
	}
	if got := walked(t, Input{Name: "a.eml", Data: []byte(nested + "\ntext")}); !slices.Equal(got, []string{"! over a limit"}) {
		t.Errorf("nested parts: %.200q", got)
	}
	many := "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\nContent-Type: text/csv\n\na,b\n", 20_000)
	if got := walked(t, Input{Name: "a.eml", Data: []byte(many)}); !slices.Equal(got, []string{"! over a limit"}) {
		t.Errorf("many parts: %.200q", got)
	}
}

func FuzzMail(f *testing.F) {
	f.Add("a.eml", []byte(mailOf()))
	f.Add("a.mbox", []byte("From a@b.c Tue Jan  2 10:20:30 2024\nFrom: a@b.c\nSubject: x\n\ntext\n\nFrom a@b.c Tue Jan  2 10:20:30 2024\nFrom: a@b.c\n\ntext"))
	f.Add("a.msg", msgOf(f))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		err := Walk(t.Context(), Input{Name: name, Data: data}, func(p Parsed) error {
			switch {
			case p.Err == nil && p.Document.Text != "":
				if len(p.Document.Anchors) == 0 {
					p.Document.Anchors = []assay.Anchor{{Line: 1}} // a message has none
				}
				checkDocument(t, p.Document, string(data)+string(p.Data)+strings.Repeat("\n", len(p.Document.Text)))
			case errors.Is(p.Err, ErrCrash):
				t.Error(p.Err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
