package server

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// encode encodes a response in JSON. Unlike package json, it writes a list or map that is nil as an
// empty one, so that clients meet null only where the OpenAPI document says so. It leaves v alone, which
// other goroutines may read.
func encode(v any) ([]byte, error) {
	if v == nil {
		return json.Marshal(v)
	}
	filled, _ := fillLists(reflect.ValueOf(v))
	return json.Marshal(filled.Interface())
}

// fillLists returns v with empty lists and maps in place of nil ones. What has to change is copied.
func fillLists(v reflect.Value) (_ reflect.Value, changed bool) {
	if !holdsLists(v.Type()) {
		return v, false
	}
	switch v.Kind() {
	case reflect.Slice:
		if v.IsNil() {
			return reflect.MakeSlice(v.Type(), 0, 0), true
		}
		return fillElements(v)
	case reflect.Map:
		if v.IsNil() {
			return reflect.MakeMap(v.Type()), true
		}
		return fillMap(v)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v, false
		}
		elem, changed := fillLists(v.Elem())
		if !changed {
			return v, false
		}
		if v.Kind() == reflect.Interface {
			return elem, true
		}
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(elem)
		return p, true
	case reflect.Struct:
		return fillStruct(v)
	}
	return v, false
}

func fillElements(v reflect.Value) (reflect.Value, bool) {
	var filled reflect.Value
	for i := range v.Len() {
		elem, changed := fillLists(v.Index(i))
		if !changed {
			continue
		}
		if !filled.IsValid() {
			filled = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(filled, v)
		}
		filled.Index(i).Set(elem)
	}
	if !filled.IsValid() {
		return v, false
	}
	return filled, true
}

func fillMap(v reflect.Value) (reflect.Value, bool) {
	filled, changed := reflect.MakeMapWithSize(v.Type(), v.Len()), false
	for key, value := range v.Seq2() {
		elem, filledElem := fillLists(value)
		filled.SetMapIndex(key, elem)
		changed = changed || filledElem
	}
	return filled, changed
}

func fillStruct(v reflect.Value) (reflect.Value, bool) {
	var filled reflect.Value
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || strings.HasSuffix(f.Tag.Get("json"), ",omitzero") && v.Field(i).IsZero() {
			continue
		}
		field, changed := fillLists(v.Field(i))
		if !changed {
			continue
		}
		if !filled.IsValid() {
			filled = reflect.New(v.Type()).Elem()
			filled.Set(v)
		}
		filled.Field(i).Set(field)
	}
	if !filled.IsValid() {
		return v, false
	}
	return filled, true
}

var listTypes sync.Map // from reflect.Type to bool

// holdsLists reports whether a value of a type may have lists or maps that package json encodes.
func holdsLists(t reflect.Type) bool {
	if known, ok := listTypes.Load(t); ok {
		return known.(bool)
	}
	holds := findLists(t, map[reflect.Type]bool{})
	listTypes.Store(t, holds)
	return holds
}

func findLists(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Interface:
		return true
	case reflect.Pointer:
		return findLists(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && findLists(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
