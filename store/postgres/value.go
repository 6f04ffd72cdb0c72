package postgres

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/assay-rag/assay"
)

// encode returns a parameter and its format. Truth values become the integers 0 and 1.
func encode(arg any) (value []byte, format int16, err error) {
	switch v := arg.(type) {
	case nil:
		return nil, pgproto3.TextFormat, nil
	case string:
		return []byte(escape(v)), pgproto3.TextFormat, nil
	case []byte:
		return v, pgproto3.BinaryFormat, nil
	case bool:
		if v {
			return []byte("1"), pgproto3.TextFormat, nil
		}
		return []byte("0"), pgproto3.TextFormat, nil
	case int:
		return strconv.AppendInt(nil, int64(v), 10), pgproto3.TextFormat, nil
	case int64:
		return strconv.AppendInt(nil, v, 10), pgproto3.TextFormat, nil
	}
	return nil, 0, fmt.Errorf("a parameter is a %T", arg)
}

// sizeOf returns about how many bytes a parameter takes.
func sizeOf(arg any) int {
	const other = 16
	switch v := arg.(type) {
	case string:
		return len(v)
	case []byte:
		return len(v)
	}
	return other
}

// scan assigns the columns of a row.
func scan(oids []uint32, row [][]byte, dest []any) error {
	if len(dest) != len(row) || len(oids) != len(row) {
		return fmt.Errorf("a row has %d columns, want %d", len(row), len(dest))
	}
	for i, to := range dest {
		v, err := decode(oids[i], row[i])
		if err == nil {
			err = assign(to, v)
		}
		if err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// scanFirst assigns the columns of the first row.
func (r result) scanFirst(dest []any) error {
	if len(r.rows) == 0 {
		return sql.ErrNoRows
	}
	return scan(r.oids, r.rows[0], dest)
}

// decode returns a column in binary format as nil, int64, string or []byte.
func decode(oid uint32, b []byte) (any, error) {
	if b == nil {
		return nil, nil
	}
	switch {
	case oid == pgtype.Int8OID && len(b) == 8:
		return int64(binary.BigEndian.Uint64(b)), nil
	case oid == pgtype.Int4OID && len(b) == 4:
		return int64(int32(binary.BigEndian.Uint32(b))), nil
	case oid == pgtype.BoolOID && len(b) == 1:
		return int64(b[0]), nil
	case oid == pgtype.ByteaOID:
		return b, nil
	case oid == pgtype.TextOID, oid == pgtype.NameOID, oid == pgtype.VarcharOID, oid == pgtype.JSONOID, oid == pgtype.UnknownOID:
		return unescape(string(b)), nil
	}
	return nil, fmt.Errorf("a column has the type %d and %d bytes: %w", oid, len(b), assay.ErrDamaged)
}

// assign stores a column.
func assign(to, v any) error {
	switch to := to.(type) {
	case sql.Scanner:
		return to.Scan(v)
	case *[]byte:
		*to = bytesOf(v)
		return nil
	case *sql.RawBytes:
		*to = bytesOf(v)
		return nil
	}
	target := reflect.ValueOf(to).Elem()
	switch v := v.(type) {
	case string:
		if target.Kind() == reflect.String {
			target.SetString(v)
			return nil
		}
	case int64:
		switch target.Kind() {
		case reflect.Int, reflect.Int64:
			target.SetInt(v)
			return nil
		case reflect.Bool:
			target.SetBool(v != 0)
			return nil
		}
	}
	return fmt.Errorf("it is a %T, which does not fit into a %s", v, target.Type())
}

// bytesOf returns the bytes of a text or of bytes.
func bytesOf(v any) []byte {
	if s, ok := v.(string); ok {
		return []byte(s)
	}
	b, _ := v.([]byte)
	return b
}

// PostgreSQL stores no NUL in a text and no bytes that are not UTF-8. Such bytes are stored as an
// escape, the byte 1 and others. The order of texts that are UTF-8 stays.
const (
	escapeByte  = '\x01'
	escapedNUL  = "\x01\x01"
	escapedSelf = "\x01\x02"
	escapedByte = '\x03' // two hexadecimal digits follow
)

// escape returns a text as it is stored.
func escape(s string) string {
	if strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, escapeByte) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0:
			b.WriteString(escapedNUL)
		case r == escapeByte:
			b.WriteString(escapedSelf)
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "%c%c%02x", escapeByte, escapedByte, s[i])
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// unescape is the inverse of escape. It leaves what is no escape.
func unescape(s string) string {
	if strings.IndexByte(s, escapeByte) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch rest := s[i:]; {
		case strings.HasPrefix(rest, escapedNUL):
			b.WriteByte(0)
			i++
		case strings.HasPrefix(rest, escapedSelf):
			b.WriteByte(escapeByte)
			i++
		default:
			c, ok := escapedBytes(rest)
			if ok {
				i += 3
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// escapedBytes returns the byte at the begin of a text, and whether it is an escape of four bytes.
func escapedBytes(s string) (c byte, ok bool) {
	if len(s) >= 4 && s[0] == escapeByte && s[1] == escapedByte {
		if n, err := strconv.ParseUint(s[2:4], 16, 8); err == nil {
			return byte(n), true
		}
	}
	return s[0], false
}
