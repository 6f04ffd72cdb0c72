package rdsdata

import (
	"cmp"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/rdsdata/types"

	"github.com/assay-rag/assay"
)

// A UUID is a value of the type uuid of PostgreSQL, which the Data API does not compare with strings.
type UUID string

// A Decimal is a value of the type numeric, in decimal digits.
type Decimal string

// CheckNamedValue implements driver.NamedValueChecker.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	switch v.Value.(type) {
	case UUID, Decimal:
		return nil
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
	v.Value = value
	return err
}

// The forms of times in the Data API, which are in UTC.
const (
	timestampForm = "2006-01-02 15:04:05.999999"
	dateForm      = "2006-01-02"
)

// parameterOf returns a parameter.
func parameterOf(a driver.NamedValue) (types.SqlParameter, error) {
	name := cmp.Or(a.Name, fmt.Sprint("p", a.Ordinal))
	p := types.SqlParameter{Name: &name}
	switch v := a.Value.(type) {
	case nil:
		p.Value = &types.FieldMemberIsNull{Value: true}
	case int64:
		p.Value = &types.FieldMemberLongValue{Value: v}
	case float64:
		p.Value = &types.FieldMemberDoubleValue{Value: v}
	case bool:
		p.Value = &types.FieldMemberBooleanValue{Value: v}
	case []byte:
		p.Value = &types.FieldMemberBlobValue{Value: v}
	case string:
		p.Value = &types.FieldMemberStringValue{Value: v}
	case time.Time:
		p.Value, p.TypeHint = &types.FieldMemberStringValue{Value: v.UTC().Format(timestampForm)}, types.TypeHintTimestamp
	case UUID:
		p.Value, p.TypeHint = &types.FieldMemberStringValue{Value: string(v)}, types.TypeHintUuid
	case Decimal:
		p.Value, p.TypeHint = &types.FieldMemberStringValue{Value: string(v)}, types.TypeHintDecimal
	default:
		return p, fmt.Errorf("parameter %s is a %T: %w", name, v, assay.ErrInvalid)
	}
	return p, nil
}

// valueOf returns the value of a field in a column of a kind.
func valueOf(f types.Field, kind string) (driver.Value, error) {
	switch v := f.(type) {
	case *types.FieldMemberIsNull:
		return nil, nil
	case *types.FieldMemberLongValue:
		return v.Value, nil
	case *types.FieldMemberDoubleValue:
		return v.Value, nil
	case *types.FieldMemberBooleanValue:
		return v.Value, nil
	case *types.FieldMemberBlobValue:
		return v.Value, nil
	case *types.FieldMemberStringValue:
		return typed(v.Value, kind)
	case *types.FieldMemberArrayValue:
		list, err := arrayOf(v.Value)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(list)
		return string(data), err
	}
	return nil, fmt.Errorf("a value of no known type: %w", assay.ErrUnavailable)
}

// typed returns a string as the type of its column.
func typed(s, kind string) (driver.Value, error) {
	form := ""
	switch kind {
	case "uuid":
		return UUID(s), nil
	case "numeric", "decimal":
		return Decimal(s), nil
	case "timestamp", "timestamptz", "datetime":
		form = timestampForm
	case "date":
		form = dateForm
	default:
		return s, nil
	}
	t, err := time.Parse(form, s)
	if err != nil {
		return s, nil // such as infinity
	}
	return t, nil
}

// arrayOf returns an array as values of JSON.
func arrayOf(a types.ArrayValue) (any, error) {
	switch v := a.(type) {
	case *types.ArrayValueMemberStringValues:
		return v.Value, nil
	case *types.ArrayValueMemberLongValues:
		return v.Value, nil
	case *types.ArrayValueMemberDoubleValues:
		return v.Value, nil
	case *types.ArrayValueMemberBooleanValues:
		return v.Value, nil
	case *types.ArrayValueMemberArrayValues:
		out := []any{}
		for _, part := range v.Value {
			list, err := arrayOf(part)
			if err != nil {
				return nil, err
			}
			out = append(out, list)
		}
		return out, nil
	}
	return nil, fmt.Errorf("an array of no known type: %w", assay.ErrUnavailable)
}
