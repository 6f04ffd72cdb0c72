package parse

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const docBook = `<?xml version="1.0"?>
<!DOCTYPE article [<!ENTITY prod "Thing &amp; Co"><!ENTITY other SYSTEM "x.xml">]>
<article xmlns="http://docbook.org/ns/docbook"><info><title>The Article</title><author><personname><firstname>Ann</firstname><surname>B</surname></personname></author></info>
<para>First &prod; <emphasis>words</emphasis> here.<footnote><para>A note.</para></footnote> More.</para>
<section><title>One</title>
<itemizedlist><listitem><para>a</para><orderedlist><listitem><para>b</para></listitem></orderedlist></listitem><listitem><para>c</para></listitem></itemizedlist>
<variablelist><varlistentry><term>t</term><listitem><para>definition</para></listitem></varlistentry></variablelist>
<programlisting>x = 1
  y</programlisting>
<table><title>Numbers</title><tgroup cols="2"><colspec colname="c1"/><colspec colname="c2"/><thead><row><entry>A</entry><entry>B</entry></row></thead>
<tbody><row><entry namest="c1" nameend="c2">wide</entry></row><row><entry>1</entry><entry>2</entry></row></tbody></tgroup></table>
<figure><title>Fig</title><mediaobject><textobject><phrase>A fox</phrase></textobject></mediaobject></figure>
</section></article>`

func TestXMLDocument(t *testing.T) {
	doc := parseString(t, "a.xml", docBook)
	checkDocument(t, doc, docBook)
	want := `heading1 "The Article"
paragraph "Ann B"
paragraph "First Thing & Co words here.[1] More."
footnote "[1] A note."
heading1 "One"
list_item1 "- a"
list_item2 "  1. b"
list_item1 "- c"
list_item1 "- t"
paragraph "definition"
code "x = 1\n  y"
caption "Numbers"
table_head "A | B"
table_row "wide"
table_row "1 | 2"
caption "Fig"
paragraph "A fox"
`
	if diff := cmp.Diff(want, outline(doc)); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
	if doc.Type != "xml" || doc.Title != "The Article" || len(doc.Tables) != 1 || doc.Tables[0].Cells[2].ColSpan != 2 {
		t.Errorf("%s %q %+v", doc.Type, doc.Title, doc.Tables)
	}
}

func TestXMLData(t *testing.T) {
	rss := `<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>News</title><link>http://x.example</link>
<item><title>One</title><description>&lt;p&gt;First &lt;b&gt;story&lt;/b&gt;&lt;/p&gt;</description><pubDate>Mon</pubDate></item>
<item><title>Two</title><description>Second story</description></item></channel></rss>`
	doc := parseString(t, "a.rss", rss)
	checkDocument(t, doc, rss)
	for _, s := range []string{"First story", "Second story", "pubDate: Mon"} {
		if !strings.Contains(doc.Text, s) {
			t.Errorf("no %q in %q", s, doc.Text)
		}
	}
	if doc.Title != "News" {
		t.Errorf("title %q", doc.Title)
	}
	data := `<people><person id="1"><name>Ann</name><age unit="y">30</age></person><person id="2"><name>Bob</name></person></people>`
	want := "table_row \"id: 1\\nname: Ann\\nage: 30 (unit: y)\"\ntable_row \"id: 2\\nname: Bob\"\n"
	if diff := cmp.Diff(want, outline(parseString(t, "a.xml", data))); diff != "" {
		t.Errorf("records (-want +got)\n%s", diff)
	}
	svg := `<svg xmlns="http://www.w3.org/2000/svg"><title>Chart</title><g><text>Sales <tspan>2024</tspan></text></g></svg>`
	if got := parseString(t, "a.svg", svg); got.Title != "Chart" || !strings.Contains(got.Text, "Sales 2024") {
		t.Errorf("%q", got.Text)
	}
}

func TestXMLEntities(t *testing.T) {
	bomb := `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;">]><a>&c;</a>`
	if _, err := Parse(t.Context(), Input{Name: "a.xml", Data: []byte(bomb)}); !errors.Is(err, ErrLimit) {
		t.Errorf("entities of entities: %v", err)
	}
	flat := `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "` + strings.Repeat("x", 9_000) + `">]><a>` + strings.Repeat("&a;", 1_000) + `</a>`
	if _, err := Parse(t.Context(), Input{Name: "a.xml", Data: []byte(flat)}); !errors.Is(err, ErrLimit) {
		t.Errorf("a long entity many times: %v", err)
	}
	deep := `<?xml version="1.0"?>` + strings.Repeat("<a>", 1_000) + "x" + strings.Repeat("</a>", 1_000)
	if _, err := Parse(t.Context(), Input{Name: "a.xml", Data: []byte(deep)}); !errors.Is(err, ErrLimit) {
		t.Errorf("deep: %v", err)
	}
}

func FuzzXML(f *testing.F) {
	fuzzFormat(f, "a.xml", docBook, "<a><b c='d'>e</b><b>f<g/>h</b></a>", "<?xml version='1.0' encoding='latin1'?><x:a xmlns:x='y'>&nbsp;&#x301;</x:a>", "<svg><text>a</text></svg>")
}
