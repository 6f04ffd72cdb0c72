package parse

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/mail"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/jhillyerd/enmime/v2"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// The metadata of a message besides its title, author and date. The messages of a thread have the
// same mailThread: the ID of its first message, as far as the message knows it.
const (
	mailID         = "message_id"
	mailInReplyTo  = "in_reply_to"
	mailReferences = "references" // list, oldest first
	mailThread     = "thread"
	mailTo         = "to" // list
	mailCC         = "cc" // list
)

// A message is an e-mail message in any format.
type message struct {
	subject       string
	from          []string // in the form "Name <address>"
	to, cc        []string
	date          time.Time // zero: none
	id, inReplyTo string    // without angle brackets
	references    []string
	text, html    string // of the body; either may be empty
	attached      []attachment
	problem       error // why an attachment or the body is not complete; nil: none
}

// An attachment is a document in a message.
type attachment struct {
	name, mediaType string
	data            []byte
}

// write writes the message: its headers as the first block, its body, and its attachments as parts.
func (m *message) write(b *builder) {
	b.unlined = true
	b.title = m.subject
	m.setMetadata(b)
	if lines := m.headers(); len(lines) > 0 {
		b.puts(Paragraph, strings.Join(lines, "\n"), 0)
	}
	if isBlank(m.html) {
		writePlainMail(b, tidy(m.text))
	} else {
		before := len(b.text)
		writeHTMLFragment(b, tidy(m.html), 0)
		if b.end(); len(b.text) == before {
			writePlainMail(b, tidy(m.text))
		}
	}
	for i, a := range m.attached {
		data := a.data
		b.addPart(Part{Name: cmp.Or(a.name, fmt.Sprintf("attachment %d%s", i+1, extensionOf(a.mediaType))), Type: a.mediaType,
			Read: func(_ context.Context, limit int64) ([]byte, error) {
				if int64(len(data)) > limit {
					return nil, errTooLarge(limit)
				}
				return data, nil
			}})
	}
	if problem := m.problem; problem != nil {
		b.addPart(Part{Name: "rest of the message", Read: func(context.Context, int64) ([]byte, error) { return nil, problem }})
	}
}

// extensionOf returns the usual extension of a media type, or "".
func extensionOf(mediaType string) string {
	for ext, t := range mailExtensions {
		if t == mediaType {
			return ext
		}
	}
	all, err := mime.ExtensionsByType(mediaType)
	if err != nil || len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}

var mailExtensions = map[string]string{".eml": "message/rfc822", ".txt": "text/plain", ".html": "text/html", ".pdf": "application/pdf"}

func (m *message) headers() []string {
	var lines []string
	add := func(name, value string) {
		if value = strings.Join(strings.Fields(value), " "); value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	add("From", strings.Join(m.from, ", "))
	add("To", strings.Join(m.to, ", "))
	add("Cc", strings.Join(m.cc, ", "))
	if !m.date.IsZero() {
		add("Date", m.date.Format("Mon, 2 Jan 2006 15:04 -0700"))
	}
	add("Subject", m.subject)
	return lines
}

func (m *message) setMetadata(b *builder) {
	set := func(key, value string) {
		if value = tidy(value); value != "" {
			b.set(key, assay.StringValue(value))
		}
	}
	list := func(key string, values []string) {
		var all []string
		for _, v := range values {
			all = append(all, tidy(v))
		}
		if len(all) > 0 {
			b.set(key, assay.ListValue(all...))
		}
	}
	if len(m.from) == 1 {
		set(assay.MetaAuthor, m.from[0])
	} else {
		list(assay.MetaAuthor, m.from)
	}
	if !m.date.IsZero() && assay.ValidTime(m.date) {
		b.set(assay.MetaCreated, assay.TimeValue(m.date))
	}
	list(mailTo, m.to)
	list(mailCC, m.cc)
	set(mailID, m.id)
	set(mailInReplyTo, m.inReplyTo)
	list(mailReferences, m.references)
	thread := m.id
	if m.inReplyTo != "" {
		thread = m.inReplyTo
	}
	if len(m.references) > 0 {
		thread = m.references[0]
	}
	set(mailThread, thread)
}

// writePlainMail writes the plain text of a message: its paragraphs with their lines. Quoted
// replies keep their marks.
func writePlainMail(b *builder, text string) {
	var paragraph []string
	flush := func() {
		b.puts(Paragraph, strings.Join(paragraph, "\n"), 0)
		paragraph = paragraph[:0]
	}
	for line := range strings.SplitSeq(text, "\n") {
		if b.canceled() {
			return
		}
		if line = strings.TrimRight(line, " \t"); strings.Trim(line, "> \t") == "" {
			flush()
			continue
		}
		paragraph = append(paragraph, line)
	}
	flush()
}

var (
	mailHeader = lazyregexp.New(`(?i)^(from|to|cc|subject|date|message-id|mime-version|return-path|received|delivered-to|reply-to|sender|content-type|references|in-reply-to|x-[a-z-]+|dkim-signature|authentication-results|thread-topic|thread-index|list-[a-z]+|user-agent|importance|content-transfer-encoding)[ \t]*:`)
	anyHeader  = lazyregexp.New(`^[!-9;-~]+[ \t]*:`)
)

// isEML reports whether src is a message in the Internet format: headers, of which several are those
// of messages, then a blank line. A message in a Maildir has no extension or a meaningless one.
func isEML(src *source) bool {
	wanted := 3
	switch src.ext {
	case ".eml":
		wanted = 1
	case "", ".txt", ".text", ".mail", ".emlx", ".email":
	default:
		if languages[src.ext] != nil {
			return false
		}
		wanted = 4
	}
	return mailHeaders(src.data) >= wanted
}

// mailHeaders returns the number of well-known headers at the start of data, or 0 if other lines
// precede the first blank line.
func mailHeaders(data []byte) int {
	data = bytes.TrimPrefix(data[:min(len(data), 64<<10)], []byte("\xef\xbb\xbf"))
	known := 0
	for n := 0; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		line = bytes.TrimRight(line, "\r")
		switch {
		case len(line) == 0:
			return known
		case n > 0 && (line[0] == ' ' || line[0] == '\t'):
		case mailHeader.MatchString(string(line)):
			known++
		case !anyHeader.MatchString(string(line)):
			return 0
		}
	}
	return known
}

// parseEML parses a message.
//
// Source: RFC 5322 and RFC 2045 to 2049.
func parseEML(src *source, b *builder) bool {
	m, err := readEML(src.data)
	if err != nil {
		b.err = err
		return true
	}
	m.write(b)
	return true
}

// deepestMIME and mostMIME bound the structure of a message.
const (
	deepestMIME = 50
	mostMIME    = 10_000
)

// readEML reads a message with the parts of its body.
func readEML(data []byte) (*message, error) {
	if n := bytes.Count(bytes.ToLower(data), []byte("content-type:")); n > mostMIME {
		return nil, fmt.Errorf("the message has more than %d parts: %w", mostMIME, ErrLimit)
	}
	if n := bytes.Count(bytes.ToLower(data), []byte("boundary")); n > deepestMIME*2 && nestedMIME(data) > deepestMIME {
		return nil, fmt.Errorf("the parts of the message are nested more than %d deep: %w", deepestMIME, ErrLimit)
	}
	parser := enmime.NewParser(enmime.DisableTextConversion(true), enmime.MaxStoredPartErrors(20), enmime.MultipartWOBoundaryAsSinglePart(true), enmime.SkipMalformedParts(false))
	e, err := parser.ReadEnvelope(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the message cannot be read: %w: %w", err, ErrDamaged)
	}
	m := &message{
		subject:    e.GetHeader("Subject"),
		from:       addresses(e, "From"),
		to:         addresses(e, "To"),
		cc:         addresses(e, "Cc"),
		id:         firstID(e.GetHeader("Message-Id")),
		inReplyTo:  firstID(e.GetHeader("In-Reply-To")),
		references: ids(e.GetHeader("References")),
		text:       e.Text,
		html:       e.HTML,
	}
	if date, err := mail.ParseDate(e.GetHeader("Date")); err == nil {
		m.date = date
	}
	for _, list := range [][]*enmime.Part{e.Attachments, e.Inlines, e.OtherParts} {
		for _, p := range list {
			m.attach(p)
		}
	}
	for _, e := range e.Errors {
		if e.Severe {
			m.problem = fmt.Errorf("a part of the message cannot be read (%s): %w", e.Detail, ErrDamaged)
		}
	}
	return m, nil
}

// nestedMIME returns the number of different boundaries that data declares, which bounds the
// nesting of its parts.
func nestedMIME(data []byte) int {
	seen := map[string]bool{}
	for _, m := range mimeBoundary.FindAllStringSubmatch(string(data), mostMIME) {
		seen[m[1]] = true
	}
	return len(seen)
}

var mimeBoundary = lazyregexp.New(`(?i)boundary[ \t]*=[ \t]*"?([^";\s]+)`)

// smallImage is the size in bytes below which an image in the body is a logo rather than a document.
const smallImage = 20 << 10

// attach adds a part that is not the body. Signatures and small images that the body shows are left
// out.
func (m *message) attach(p *enmime.Part) {
	switch p.ContentType {
	case "application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature":
		return
	}
	shown := p.Disposition != "attachment" && strings.HasPrefix(p.ContentType, "image/")
	if shown && len(p.Content) < smallImage {
		return
	}
	name := p.FileName
	if p.ContentType == "message/rfc822" && path.Ext(name) == "" {
		name = attachedName(name, p.Content)
	}
	m.attached = append(m.attached, attachment{name: name, mediaType: p.ContentType, data: p.Content})
}

// attachedName returns a name for an attached message: its own or its subject.
func attachedName(name string, data []byte) string {
	if name == "" {
		header, _, _ := bytes.Cut(data, []byte("\n\n"))
		if sent, err := mail.ReadMessage(bytes.NewReader(slices.Concat(header, []byte("\n\n")))); err == nil {
			name = decodedHeader(sent.Header.Get("Subject"))
		}
	}
	return messageName(name)
}

// messageName returns the file name of a message with a subject.
func messageName(subject string) string {
	const longest = 80
	name := strings.TrimSpace(strings.NewReplacer("/", "-", "\\", "-", "\n", " ", "\r", "").Replace(subject))
	if len(name) > longest {
		name = strings.TrimSpace(strings.ToValidUTF8(name[:longest], ""))
	}
	return cmp.Or(name, "message") + ".eml"
}

func decodedHeader(s string) string {
	decoded, err := new(mime.WordDecoder).DecodeHeader(s)
	if err != nil {
		return s
	}
	return decoded
}

// addresses returns the addresses of a header. A header that is not a list of addresses is one.
func addresses(e *enmime.Envelope, header string) []string {
	raw := e.GetHeader(header)
	list, err := e.AddressList(header)
	if err != nil {
		if raw == "" {
			return nil
		}
		return []string{raw}
	}
	var all []string
	for _, a := range list {
		all = append(all, address(a.Name, a.Address))
	}
	return all
}

// address returns the readable form of an address.
func address(name, addr string) string {
	switch {
	case addr == "" || addr == name:
		return name
	case name == "":
		return addr
	}
	return name + " <" + addr + ">"
}

var messageID = lazyregexp.New(`<([^<>\s]+)>`)

// ids returns the message IDs in a header.
func ids(header string) []string {
	const most = 1_000
	var all []string
	for _, m := range messageID.FindAllStringSubmatch(header, most) {
		all = append(all, m[1])
	}
	return all
}

func firstID(header string) string {
	if all := ids(header); len(all) > 0 {
		return all[0]
	}
	return strings.TrimSpace(header)
}

// isMbox reports whether src is a folder of messages in one file.
func isMbox(src *source) bool {
	switch src.ext {
	case ".mbox", ".mbx", "", ".txt", ".text":
	default:
		return false
	}
	line, rest, _ := bytes.Cut(src.data[:min(len(src.data), 64<<10)], []byte("\n"))
	return mboxLine.MatchString(string(line)) && mailHeaders(rest) > 1
}

var mboxLine = lazyregexp.New(`^From \S+ .*\d\d:\d\d`)

// parseMbox lists the messages of an mbox file. A line that starts with "From " after a blank line
// and before a header starts a message; the mark of such lines in messages, ">From ", is removed.
//
// Source: RFC 4155; "mboxrd" in Hall, "The application/mbox Media Type", appendix A.
func parseMbox(src *source, b *builder) bool {
	data := src.data
	n := 0
	for len(data) > 0 && !b.canceled() {
		_, rest, _ := bytes.Cut(data, []byte("\n")) // the line "From …"
		end := nextMessage(rest)
		text := rest[:end]
		data = rest[end:]
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		n++
		b.addPart(Part{Name: fmt.Sprintf("%05d %s", n, attachedName("", text)), Type: "message/rfc822",
			Read: func(_ context.Context, limit int64) ([]byte, error) {
				if int64(len(text)) > limit {
					return nil, errTooLarge(limit)
				}
				return []byte(quotedFrom.ReplaceAllString(string(text), "$1")), nil
			}})
	}
	return emptyArchive(b)
}

var quotedFrom = lazyregexp.New(`(?m)^>(>*From )`)

// nextMessage returns the offset of the next line that starts a message in data, or its length.
func nextMessage(data []byte) int {
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte("\nFrom "))
		if i < 0 {
			return len(data)
		}
		at += i + 1
		before := bytes.TrimRight(data[max(0, at-3):at], "\r\n")
		line, rest, _ := bytes.Cut(data[at:], []byte("\n"))
		blankBefore := at < 2 || len(before) < min(3, at)-1
		if blankBefore && mboxLine.MatchString(string(line)) && anyHeader.MatchString(string(rest[:min(len(rest), 200)])) {
			return at
		}
	}
}
