package indextest

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// A commitLog keeps a source's commits in a file, so that they survive a crash of the process. Each
// commit is a gob preceded by its length and its CRC-32, both uint32, little-endian. The log is not
// durable against a loss of power.
type commitLog struct{ file *os.File }

// OpenSource returns the source stored in a file, or an empty source if the file does not exist. A
// commit that a killed process wrote only partly is ignored. Only one source at a time may have the
// file open. A failing write panics.
func OpenSource(identity, path string) (*Source, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := NewSource(identity)
	s.log = &commitLog{file}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	rest := data
	for len(rest) >= 8 {
		size, sum := binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint32(rest[4:])
		if uint64(len(rest)-8) < uint64(size) || crc32.ChecksumIEEE(rest[8:8+size]) != sum {
			break
		}
		var c commit
		if err := gob.NewDecoder(bytes.NewReader(rest[8 : 8+size])).Decode(&c); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		s.apply(c)
		rest = rest[8+size:]
	}
	whole := int64(len(data) - len(rest))
	if err := file.Truncate(whole); err != nil {
		return nil, err
	}
	_, err = file.Seek(whole, io.SeekStart)
	return s, err
}

// Close closes the source's file, if it has one.
func (s *Source) Close() error {
	if s.log == nil {
		return nil
	}
	return s.log.file.Close()
}

func (l *commitLog) append(c commit) {
	record := bytes.NewBuffer(make([]byte, 8))
	if err := gob.NewEncoder(record).Encode(c); err != nil {
		panic(fmt.Sprintf("indextest: %v", err))
	}
	b := record.Bytes()
	binary.LittleEndian.PutUint32(b, uint32(len(b)-8))
	binary.LittleEndian.PutUint32(b[4:], crc32.ChecksumIEEE(b[8:]))
	if _, err := l.file.Write(b); err != nil {
		panic(fmt.Sprintf("indextest: %v", err))
	}
}
