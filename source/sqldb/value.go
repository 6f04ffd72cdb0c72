package sqldb

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// text returns a value as text, which is empty for NULL.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}

func validText(s string) bool { return utf8.ValidString(s) }

// value returns a value as metadata. ok is false for NULL and for what has no form.
func value(v any) (assay.Value, bool) {
	switch v := v.(type) {
	case nil:
		return assay.Value{}, false
	case int64:
		return assay.NumberValue(float64(v)), true
	case float64:
		return assay.NumberValue(v), !math.IsNaN(v) && !math.IsInf(v, 0)
	case bool:
		return assay.BooleanValue(v), true
	case time.Time:
		return assay.TimeValue(v), assay.ValidTime(v)
	}
	s := text(v)
	return assay.StringValue(s), validText(s) && s != ""
}

// recent is the age that the time of an update must have to prove that the row has not changed since.
const recent = 5 * time.Second

// version returns the value of the column updated or, without one, a hash of the row's text. It is
// empty for a row that was updated so recently that it could change again within the same tick.
func (t *table) version(row map[string]any) string {
	if t.updated == "" {
		h := sha256.New()
		for _, name := range t.text {
			s := text(row[name])
			fmt.Fprintf(h, "%d:%s", len(s), s)
		}
		return hex.EncodeToString(h.Sum(nil)[:16])
	}
	if when, ok := row[t.updated].(time.Time); ok && t.config.Now().Sub(when) < recent {
		return ""
	}
	return text(row[t.updated])
}
