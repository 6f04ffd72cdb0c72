package parse

import (
	"bytes"
	le "encoding/binary"
	"slices"
	"testing"
	"unicode/utf16"
)

// A node is a stream, or a storage if it has children, of a compound file.
type node struct {
	name     string
	data     []byte
	children []node
}

// compoundOf writes a compound file of version 3 with the given entries at its root. Streams below
// 4,096 bytes are in the mini stream.
//
// Source: Microsoft, [MS-CFB].
func compoundOf(t testing.TB, entries []node) []byte {
	t.Helper()
	const (
		sector, mini  = 512, 64
		none          = 0xffffffff
		endOfChain    = 0xfffffffe
		fatSector     = 0xfffffffd
		root, storage = 5, 1
		stream        = 2
	)
	type entry struct {
		name         string
		kind         byte
		right, child uint32
		start        uint32
		size         int
		data         []byte
	}
	all := []entry{{name: "Root Entry", kind: root, right: none, child: none}}
	var add func(nodes []node) uint32
	add = func(nodes []node) uint32 {
		first := uint32(none)
		for _, n := range slices.Backward(nodes) {
			e := entry{name: n.name, kind: stream, right: first, child: none, size: len(n.data), data: n.data}
			if n.children != nil {
				e.kind = storage
				e.child = add(n.children)
			}
			first = uint32(len(all))
			all = append(all, e)
		}
		return first
	}
	child := add(entries)
	all[0].child = child

	var sectors, ministream []byte
	var fat, miniFAT []uint32
	chain := func(table []uint32, n int) []uint32 {
		for i := range n {
			next := uint32(len(table) + 1)
			if i == n-1 {
				next = endOfChain
			}
			table = append(table, next)
		}
		return table
	}
	pad := func(data []byte, size int) []byte {
		return append(slices.Clone(data), make([]byte, (size-len(data)%size)%size)...)
	}
	place := func(data []byte) uint32 {
		start := uint32(len(fat))
		padded := pad(data, sector)
		sectors = append(sectors, padded...)
		fat = chain(fat, len(padded)/sector)
		return start
	}
	for i := range all[1:] {
		e := &all[i+1]
		switch {
		case len(e.data) == 0:
			e.start = endOfChain
		case len(e.data) < 4096:
			e.start = uint32(len(miniFAT))
			padded := pad(e.data, mini)
			ministream = append(ministream, padded...)
			miniFAT = chain(miniFAT, len(padded)/mini)
		default:
			e.start = place(e.data)
		}
	}
	all[0].start, all[0].size = endOfChain, len(ministream)
	if len(ministream) > 0 {
		all[0].start = place(ministream)
	}
	words := func(table []uint32) []byte {
		var b []byte
		for _, v := range table {
			b = le.LittleEndian.AppendUint32(b, v)
		}
		for len(b)%sector != 0 {
			b = append(b, 0xff)
		}
		return b
	}
	miniStart := uint32(endOfChain)
	miniBytes := words(miniFAT)
	if len(miniBytes) > 0 {
		miniStart = place(miniBytes)
	}
	var directory []byte
	for _, e := range all {
		var d [128]byte
		units := utf16.Encode([]rune(e.name))
		for i, u := range units {
			le.LittleEndian.PutUint16(d[2*i:], u)
		}
		le.LittleEndian.PutUint16(d[64:], uint16(2*len(units)+2))
		d[66], d[67] = e.kind, 1
		le.LittleEndian.PutUint32(d[68:], none)
		le.LittleEndian.PutUint32(d[72:], e.right)
		le.LittleEndian.PutUint32(d[76:], e.child)
		le.LittleEndian.PutUint32(d[116:], e.start)
		le.LittleEndian.PutUint32(d[120:], uint32(e.size))
		directory = append(directory, d[:]...)
	}
	for len(directory)%sector != 0 {
		var d [128]byte
		le.LittleEndian.PutUint32(d[68:], none)
		le.LittleEndian.PutUint32(d[72:], none)
		le.LittleEndian.PutUint32(d[76:], none)
		directory = append(directory, d[:]...)
	}
	directoryStart := place(directory)
	fatStart, fatSectors := len(fat), 1
	for (len(fat)+fatSectors)*4 > fatSectors*sector {
		fatSectors++
	}
	if fatSectors > 109 {
		t.Fatal("too large for this writer")
	}
	for range fatSectors {
		fat = append(fat, fatSector)
	}
	sectors = append(sectors, words(fat)...)

	header := append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), make([]byte, 16)...)
	for _, v := range []uint16{0x3e, 3, 0xfffe, 9, 6, 0, 0, 0} {
		header = le.LittleEndian.AppendUint16(header, v)
	}
	for _, v := range []uint32{0, uint32(fatSectors), directoryStart, 0, 4096, miniStart, uint32(len(miniBytes) / sector), endOfChain, 0} {
		header = le.LittleEndian.AppendUint32(header, v)
	}
	for i := range 109 {
		v := uint32(none)
		if i < fatSectors {
			v = uint32(fatStart + i)
		}
		header = le.LittleEndian.AppendUint32(header, v)
	}
	return bytes.Join([][]byte{header, sectors}, nil)
}

// msgString is a property that is a string.
func msgString(tag string, s string) node {
	return node{name: "__substg1.0_" + tag + "001F", data: utf16Name(s)}
}

// msgFixed is the stream of properties of fixed size, after a header.
func msgFixed(header int, values map[uint32]uint64) node {
	data := make([]byte, header)
	var tags []uint32
	for tag := range values {
		tags = append(tags, tag)
	}
	slices.Sort(tags)
	for _, tag := range tags {
		data = le.LittleEndian.AppendUint32(data, tag)
		data = le.LittleEndian.AppendUint32(data, 6)
		data = le.LittleEndian.AppendUint64(data, values[tag])
	}
	return node{name: msgProperties, data: data}
}
