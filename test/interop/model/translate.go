package model

import (
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Translate sets an object from one of another type: each field from that of the same
// name, or of the name that is the tag "also" of the model's field. A field that one of the
// types does not have, because releases of Cilium differ, or that is nil in from, stays
// unchanged. Values of different types need a function, each a func(From) To: those for
// addresses and times are built in. The error is about a text that is no address.
func Translate(to, from any, functions ...any) error {
	var t translation
	for _, f := range append(functions[:len(functions):len(functions)],
		func(ip net.IP) netip.Addr { // the text on the wire does not tell IPv4 in IPv6
			addr, _ := netip.AddrFromSlice(ip)
			return addr.Unmap()
		},
		func(addr netip.Addr) net.IP { return addr.AsSlice() },
		netip.Addr.String, netip.ParseAddr, time.Time.UTC,
	) {
		t = append(t, reflect.ValueOf(f))
	}
	return t.value(reflect.ValueOf(to).Elem(), reflect.ValueOf(from))
}

// translation are the functions that are known.
type translation []reflect.Value

func (t translation) value(to, from reflect.Value) error {
	for _, f := range t {
		if f.Type().In(0) == from.Type() && f.Type().Out(0) == to.Type() {
			out := f.Call([]reflect.Value{from})
			to.Set(out[0])
			if len(out) == 2 && !out[1].IsNil() {
				return out[1].Interface().(error)
			}
			return nil
		}
	}
	switch {
	case from.Type() == to.Type():
		to.Set(from)
	case from.Kind() != reflect.Pointer && to.Kind() == reflect.Pointer && from.IsZero():
	case from.Kind() == reflect.Pointer && from.IsNil():
	case to.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return t.value(to.Elem(), reflect.Indirect(from))
	case from.Kind() == reflect.Pointer:
		return t.value(to, from.Elem())
	case from.Kind() == reflect.Struct:
		return t.fields(to, from)
	case from.Kind() == reflect.Slice && !from.IsNil():
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			if err := t.value(to.Index(i), from.Index(i)); err != nil {
				return err
			}
		}
	case from.Kind() == reflect.Map && !from.IsNil():
		return t.entries(to, from)
	case from.Kind() != reflect.Slice && from.Kind() != reflect.Map:
		to.Set(from.Convert(to.Type()))
	}
	return nil
}

func (t translation) fields(to, from reflect.Value) error {
	for i := range to.NumField() {
		if field := counterpart(to.Type().Field(i), from); field.IsValid() {
			if err := t.value(to.Field(i), field); err != nil {
				return err
			}
		}
	}
	return nil
}

// counterpart returns the field that another one is set from, if there is one.
func counterpart(of reflect.StructField, from reflect.Value) reflect.Value {
	for i := range from.NumField() {
		f := from.Type().Field(i)
		if f.IsExported() && (f.Name == of.Name || f.Name == of.Tag.Get("also") || f.Tag.Get("also") == of.Name) {
			return from.Field(i)
		}
	}
	return reflect.Value{}
}

// entries translates a map in the order of its texts: of two spellings of an address the
// last one counts. A key that is no address is left out: the releases check the addresses of backends and frontends
// themselves, and look up host names and zones by the text of an address, which finds no other key (wire.md §1.3).
func (t translation) entries(to, from reflect.Value) error {
	to.Set(reflect.MakeMap(to.Type()))
	keys := from.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		key, value := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
		if t.value(key, k) != nil {
			continue
		}
		if err := t.value(value, from.MapIndex(k)); err != nil {
			return err
		}
		to.SetMapIndex(key, value)
	}
	return nil
}
