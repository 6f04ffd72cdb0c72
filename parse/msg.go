package parse

import (
	"bytes"
	"cmp"
	"encoding/base64"
	le "encoding/binary"
	"fmt"
	"io"
	"mime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/richardlehane/mscfb"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// isMSG reports whether src is a message of Outlook: a compound file with a stream of properties.
func isMSG(src *source) bool {
	return bytes.HasPrefix(src.data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) && bytes.Contains(src.data, utf16Name(msgProperties))
}

const msgProperties = "__properties_version1.0"

func utf16Name(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = le.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// Limits of a message of Outlook.
const (
	deepestMSG = 8
	mostMSG    = 50_000    // streams and storages
	largestMSG = 64 << 20  // bytes of a stream
	totalMSG   = 256 << 20 // bytes of all streams
)

// The tags of properties.
//
// Source: Microsoft, [MS-OXPROPS].
const (
	propSubject       = 0x0037
	propSubmitted     = 0x0039
	propHeaders       = 0x007d
	propSenderName    = 0x0c1a
	propSenderEmail   = 0x0c1f
	propSenderSMTP    = 0x5d01
	propDisplayCC     = 0x0e03
	propDisplayTo     = 0x0e04
	propDelivered     = 0x0e06
	propBody          = 0x1000
	propRTF           = 0x1009
	propHTML          = 0x1013
	propMessageID     = 0x1035
	propReferences    = 0x1039
	propInReplyTo     = 0x1042
	propRecipientType = 0x0c15
	propDisplayName   = 0x3001
	propEmail         = 0x3003
	propSMTP          = 0x39fe
	propData          = 0x3701
	propExtension     = 0x3703
	propFileName      = 0x3704
	propLongName      = 0x3707
	propMIMEType      = 0x370e
	propCodePage      = 0x3ffd
	propHTMLCodePage  = 0x3fde
)

// parseMSG parses a message of Outlook.
//
// Source: Microsoft, [MS-OXMSG] and [MS-CFB].
func parseMSG(src *source, b *builder) bool {
	root, err := readCompound(src.data, b)
	if err != nil {
		b.err = err
		return true
	}
	if b.canceled() {
		return true
	}
	root.message(32, 0).write(b)
	return true
}

// A storage is a folder of a compound file.
type storage struct {
	streams  map[string][]byte
	storages map[string]*storage
}

func newStorage() *storage {
	return &storage{streams: map[string][]byte{}, storages: map[string]*storage{}}
}

// readCompound reads all streams of a compound file.
func readCompound(data []byte, b *builder) (*storage, error) {
	r, err := mscfb.New(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the message cannot be read: %w: %w", err, ErrDamaged)
	}
	if len(r.File) > mostMSG {
		return nil, fmt.Errorf("the message has more than %d streams: %w", mostMSG, ErrLimit)
	}
	root := newStorage()
	left := int64(totalMSG)
	for _, f := range r.File {
		if b.canceled() {
			return nil, b.ctx.Err()
		}
		at := root.open(f.Path)
		if at == nil {
			continue
		}
		if f.FileInfo().IsDir() {
			at.open([]string{f.Name})
			continue
		}
		if f.Size > largestMSG || f.Size > int64(len(data)) || left < f.Size {
			return nil, fmt.Errorf("a stream of the message has %d MiB: %w", f.Size>>20, ErrLimit)
		}
		left -= f.Size
		content, err := io.ReadAll(io.LimitReader(f, f.Size))
		if err != nil {
			return nil, fmt.Errorf("the stream %q of the message cannot be read: %w: %w", f.Name, err, ErrDamaged)
		}
		at.streams[f.Name] = content
	}
	return root, nil
}

// open returns the storage at a path, which it creates. It returns nil if the path is too deep.
func (s *storage) open(path []string) *storage {
	const deepest = 3 * deepestMSG
	if len(path) > deepest {
		return nil
	}
	for _, name := range path {
		if s.storages[name] == nil {
			s.storages[name] = newStorage()
		}
		s = s.storages[name]
	}
	return s
}

// A propertySet is the properties of a message, a recipient or an attachment.
type propertySet struct {
	*storage
	fixed   map[uint16]uint64 // by tag: the values of up to eight bytes
	charset encoding.Encoding // of strings of bytes
}

// properties returns the properties of s. Those of fixed size follow a header.
func (s *storage) properties(header int, charset encoding.Encoding) propertySet {
	p := propertySet{storage: s, fixed: map[uint16]uint64{}, charset: charset}
	data := s.streams[msgProperties]
	for at := header; at+16 <= len(data); at += 16 {
		tag := le.LittleEndian.Uint32(data[at:])
		p.fixed[uint16(tag>>16)] = le.LittleEndian.Uint64(data[at+8:])
	}
	if page, ok := p.fixed[propCodePage]; ok {
		p.charset = codePage(uint32(page))
	}
	return p
}

// codePage returns the encoding of a Windows code page; nil: UTF-8 or not known.
func codePage(n uint32) encoding.Encoding {
	if n == 65001 || n == 20127 {
		return nil
	}
	names := map[uint32]string{932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5", 20866: "koi8-r", 50220: "iso-2022-jp", 51932: "euc-jp", 54936: "gb18030"}
	name := names[n]
	switch {
	case name != "":
	case 28591 <= n && n <= 28605:
		name = "iso-8859-" + strconv.Itoa(int(n-28590))
	default:
		name = "windows-" + strconv.Itoa(int(n))
	}
	if e, err := htmlindex.Get(name); err == nil {
		return e
	}
	if e, err := ianaindex.IANA.Encoding(name); err == nil {
		return e
	}
	return nil
}

func decodeBytes(data []byte, e encoding.Encoding) string {
	if e == nil {
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	text, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	return string(text)
}

// string returns a property that is a string; "" if there is none.
func (p propertySet) string(tag uint16) string {
	if data, ok := p.streams[fmt.Sprintf("__substg1.0_%04X001F", tag)]; ok {
		units := make([]uint16, len(data)/2)
		for i := range units {
			units[i] = le.LittleEndian.Uint16(data[2*i:])
		}
		return strings.TrimRight(string(utf16.Decode(units)), "\x00")
	}
	if data, ok := p.streams[fmt.Sprintf("__substg1.0_%04X001E", tag)]; ok {
		return strings.TrimRight(decodeBytes(data, p.charset), "\x00")
	}
	return ""
}

// bytes returns a binary property.
func (p propertySet) bytes(tag uint16) []byte {
	return p.streams[fmt.Sprintf("__substg1.0_%04X0102", tag)]
}

// time returns a property that is a time, in intervals of 100 ns since 1601.
func (p propertySet) time(tag uint16) time.Time {
	const unixEpoch = 116444736000000000
	v, ok := p.fixed[tag]
	if !ok || v < unixEpoch || v > unixEpoch+1e18 {
		return time.Time{}
	}
	v -= unixEpoch
	return time.Unix(int64(v/1e7), int64(v%1e7)*100).UTC()
}

// message returns the message in s, whose fixed properties follow a header of the given size.
func (s *storage) message(header, depth int) *message {
	p := s.properties(header, nil)
	m := &message{
		subject:    p.string(propSubject),
		text:       p.string(propBody),
		html:       p.html(),
		id:         firstID(p.string(propMessageID)),
		inReplyTo:  firstID(p.string(propInReplyTo)),
		references: ids(p.string(propReferences)),
		date:       p.time(propSubmitted),
	}
	if m.date.IsZero() {
		m.date = p.time(propDelivered)
	}
	email := cmp.Or(p.string(propSenderSMTP), p.string(propSenderEmail))
	if strings.HasPrefix(email, "/") { // an Exchange name
		email = ""
	}
	if from := address(p.string(propSenderName), email); from != "" {
		m.from = []string{from}
	}
	s.recipients(m, p)
	if rtf := p.bytes(propRTF); len(rtf) > 0 && isBlank(m.text) && isBlank(m.html) {
		text, err := decompressRTF(rtf)
		if err != nil {
			m.problem = fmt.Errorf("the text of the message cannot be read: %w: %w", err, ErrDamaged)
		} else {
			m.attached = append(m.attached, attachment{name: "body.rtf", mediaType: "application/rtf", data: text})
		}
	}
	s.attachments(m, p, depth)
	return m
}

func (p propertySet) html() string {
	if s := p.string(propHTML); s != "" {
		return s
	}
	data := p.bytes(propHTML)
	if page, ok := p.fixed[propHTMLCodePage]; ok {
		return decodeBytes(data, codePage(uint32(page)))
	}
	return decodeBytes(data, p.charset)
}

// sorted returns the storages whose names start with prefix, by name.
func (s *storage) sorted(prefix string) []*storage {
	var names []string
	for name := range s.storages {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var all []*storage
	for _, name := range names {
		all = append(all, s.storages[name])
	}
	return all
}

func (s *storage) recipients(m *message, p propertySet) {
	const (
		typeTo = 1
		typeCC = 2
	)
	for _, r := range s.sorted("__recip_version1.0_") {
		q := r.properties(8, p.charset)
		email := cmp.Or(q.string(propSMTP), q.string(propEmail))
		if strings.HasPrefix(email, "/") {
			email = ""
		}
		who := address(q.string(propDisplayName), email)
		switch {
		case who == "":
		case q.fixed[propRecipientType] == typeTo:
			m.to = append(m.to, who)
		case q.fixed[propRecipientType] == typeCC:
			m.cc = append(m.cc, who)
		}
	}
	if to := p.string(propDisplayTo); len(m.to) == 0 && to != "" {
		m.to = []string{to}
	}
	if cc := p.string(propDisplayCC); len(m.cc) == 0 && cc != "" {
		m.cc = []string{cc}
	}
}

// attachments adds the attachments. An attached message becomes one in the Internet format.
func (s *storage) attachments(m *message, p propertySet, depth int) {
	for _, a := range s.sorted("__attach_version1.0_") {
		q := a.properties(8, p.charset)
		name := cmp.Or(q.string(propLongName), q.string(propFileName), q.string(propDisplayName))
		if embedded := a.storages[fmt.Sprintf("__substg1.0_%04X000D", propData)]; embedded != nil && embedded.streams[msgProperties] != nil {
			if depth == deepestMSG {
				m.problem = fmt.Errorf("the message has messages nested more than %d deep: %w", deepestMSG, ErrLimit)
				continue
			}
			inner := embedded.message(24, depth+1)
			m.attached = append(m.attached, attachment{name: messageName(cmp.Or(inner.subject, name)), mediaType: "message/rfc822", data: inner.eml()})
			continue
		}
		data, ok := a.streams[fmt.Sprintf("__substg1.0_%04X0102", propData)]
		if !ok {
			m.problem = fmt.Errorf("the attachment %q is not stored in the message: %w", name, ErrBinary)
			continue
		}
		mediaType, _, err := mime.ParseMediaType(q.string(propMIMEType))
		if err != nil {
			mediaType = ""
		}
		hidden := q.fixed[0x7ffe]&1 != 0 // PidTagAttachmentHidden: the body shows it
		if hidden && len(data) < smallImage {
			continue
		}
		m.attached = append(m.attached, attachment{name: name, mediaType: mediaType, data: data})
	}
}

// eml returns the message in the Internet format, with all that write writes.
func (m *message) eml() []byte {
	var b bytes.Buffer
	header := func(name, value string) {
		if value = strings.Join(strings.Fields(value), " "); value != "" {
			fmt.Fprintf(&b, "%s: %s\r\n", name, mime.BEncoding.Encode("utf-8", value))
		}
	}
	list := func(name string, values []string) { header(name, strings.Join(values, ", ")) }
	header("Subject", m.subject)
	list("From", m.from)
	list("To", m.to)
	list("Cc", m.cc)
	if !m.date.IsZero() {
		header("Date", m.date.Format(time.RFC1123Z))
	}
	bracketed := func(id string) string {
		if id == "" {
			return ""
		}
		return "<" + id + ">"
	}
	header("Message-Id", bracketed(m.id))
	header("In-Reply-To", bracketed(m.inReplyTo))
	var references []string
	for _, id := range m.references {
		references = append(references, bracketed(id))
	}
	header("References", strings.Join(references, " "))
	boundary := m.boundary()
	fmt.Fprintf(&b, "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=%q\r\n\r\n", boundary)
	part := func(mediaType, name string, data []byte) {
		fmt.Fprintf(&b, "--%s\r\nContent-Type: %s\r\nContent-Transfer-Encoding: base64\r\n", boundary, cmp.Or(mediaType, "application/octet-stream"))
		if name != "" {
			fmt.Fprintf(&b, "Content-Disposition: %s\r\n", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
		}
		b.WriteString("\r\n")
		lines := base64.StdEncoding.EncodeToString(data)
		for len(lines) > 76 {
			b.WriteString(lines[:76] + "\r\n")
			lines = lines[76:]
		}
		b.WriteString(lines + "\r\n")
	}
	if isBlank(m.html) {
		part("text/plain; charset=utf-8", "", []byte(m.text))
	} else {
		part("text/html; charset=utf-8", "", []byte(m.html))
	}
	for _, a := range m.attached {
		part(a.mediaType, cmp.Or(a.name, "attachment"), a.data)
	}
	if m.problem != nil {
		part("text/plain; charset=utf-8", "rest of the message.txt", []byte(m.problem.Error()))
	}
	fmt.Fprintf(&b, "--%s--\r\n", boundary)
	return b.Bytes()
}

// boundary returns a boundary that depends on the message only. Base64 cannot contain it.
func (m *message) boundary() string {
	return fmt.Sprintf("=_%d_%d_%d", len(m.attached), len(m.text), len(m.html))
}

// decompressRTF decompresses the text of a message in Rich Text Format.
//
// Source: Microsoft, [MS-OXRTFCP].
func decompressRTF(data []byte) ([]byte, error) {
	const (
		header       = 16
		compressed   = 0x75465a4c // "LZFu"
		uncompressed = 0x414c454d // "MELA"
		most         = 32 << 20
	)
	if len(data) < header {
		return nil, io.ErrUnexpectedEOF
	}
	size := int(le.LittleEndian.Uint32(data[4:]))
	if size > most {
		return nil, fmt.Errorf("%d bytes of Rich Text: %w", size, ErrLimit)
	}
	body := data[header:]
	switch le.LittleEndian.Uint32(data[8:]) {
	case uncompressed:
		return body[:min(size, len(body))], nil
	case compressed:
		return inflateRTF(body, size)
	}
	return nil, fmt.Errorf("an unknown compression of Rich Text")
}

// rtfDictionary is the initial content of the dictionary.
const rtfDictionary = `{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0` + "\r\n" + `\par \pard\plain\f0\fs20\b\i\u\tab\tx`

// inflateRTF decompresses up to size bytes: a byte of flags, then for each flag a byte of text or a
// reference to the dictionary of 4,096 bytes, 12 bits of offset and 4 of length.
func inflateRTF(body []byte, size int) ([]byte, error) {
	var dictionary [4096]byte
	at := copy(dictionary[:], rtfDictionary)
	out := make([]byte, 0, min(size, 10*len(body)))
	put := func(c byte) {
		out = append(out, c)
		dictionary[at] = c
		at = (at + 1) % len(dictionary)
	}
	for len(out) < size {
		if len(body) == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		flags := body[0]
		body = body[1:]
		for bit := 0; bit < 8 && len(out) < size; bit++ {
			if flags&(1<<bit) == 0 {
				if len(body) == 0 {
					return nil, io.ErrUnexpectedEOF
				}
				put(body[0])
				body = body[1:]
				continue
			}
			if len(body) < 2 {
				return nil, io.ErrUnexpectedEOF
			}
			reference := int(body[0])<<8 | int(body[1])
			body = body[2:]
			from, length := reference>>4, reference&15+2
			if from == at {
				return out, nil
			}
			for k := range length {
				put(dictionary[(from+k)%len(dictionary)])
			}
		}
	}
	return out, nil
}
