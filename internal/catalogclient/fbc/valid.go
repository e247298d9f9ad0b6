package fbc

import (
	"encoding/binary"
	"math/bits"
)

// valid reports whether b is one JSON value, with space around it or not. It
// accepts what encoding/json accepts, several times as fast: nearly all of a
// catalog is long strings, which it goes through eight bytes at a time. It calls
// itself for every level of nesting, which has to be bounded by the caller.
func valid(b []byte) bool {
	v := validator{rest: space(b)}
	return v.value() && len(space(v.rest)) == 0
}

// validator consumes JSON. Its methods report whether what came was valid.
type validator struct{ rest []byte }

func (v *validator) value() bool {
	if len(v.rest) == 0 {
		return false
	}
	switch v.rest[0] {
	case '{':
		return v.list('}')
	case '[':
		return v.list(']')
	case '"':
		return v.text()
	case 't':
		return v.literal("true")
	case 'f':
		return v.literal("false")
	case 'n':
		return v.literal("null")
	}
	return v.number()
}

// list consumes an object or an array, of which end is the closing bracket.
func (v *validator) list(end byte) bool {
	v.rest = space(v.rest[1:])
	if v.take(end) {
		return true
	}
	for {
		if end == '}' && !v.key() {
			return false
		}
		if !v.value() {
			return false
		}
		v.rest = space(v.rest)
		if v.take(end) {
			return true
		}
		if !v.take(',') {
			return false
		}
		v.rest = space(v.rest)
	}
}

func (v *validator) key() bool {
	if !v.text() {
		return false
	}
	v.rest = space(v.rest)
	if !v.take(':') {
		return false
	}
	v.rest = space(v.rest)
	return true
}

func (v *validator) text() bool {
	if !v.take('"') {
		return false
	}
	for {
		v.rest = v.rest[plain(v.rest):]
		if v.take('"') {
			return true
		}
		if !v.escape() {
			return false
		}
	}
}

func (v *validator) escape() bool {
	const length, unicodeLength = len(`\n`), len(`\u0000`)
	if len(v.rest) < length || v.rest[0] != '\\' {
		return false
	}
	switch v.rest[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		v.rest = v.rest[length:]
		return true
	case 'u':
		if len(v.rest) < unicodeLength {
			return false
		}
		for _, c := range v.rest[length:unicodeLength] {
			if !isHex(c) {
				return false
			}
		}
		v.rest = v.rest[unicodeLength:]
		return true
	}
	return false
}

func (v *validator) number() bool {
	v.take('-')
	if !v.take('0') && !v.digits() {
		return false
	}
	if v.take('.') && !v.digits() {
		return false
	}
	if v.take('e') || v.take('E') {
		_ = v.take('+') || v.take('-')
		return v.digits()
	}
	return true
}

// digits consumes at least one digit.
func (v *validator) digits() bool {
	n := 0
	for n < len(v.rest) && '0' <= v.rest[n] && v.rest[n] <= '9' {
		n++
	}
	v.rest = v.rest[n:]
	return n > 0
}

func (v *validator) literal(want string) bool {
	if len(v.rest) < len(want) || string(v.rest[:len(want)]) != want {
		return false
	}
	v.rest = v.rest[len(want):]
	return true
}

// take consumes c if it comes next.
func (v *validator) take(c byte) bool {
	if len(v.rest) == 0 || v.rest[0] != c {
		return false
	}
	v.rest = v.rest[1:]
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// plain returns how many bytes at the start of b stand for themselves within a
// string: all up to a quote, a backslash or a control character.
func plain(b []byte) int {
	const (
		wordBytes = 8
		each      = 0x0101010101010101 // times c: a word of c
		high      = 0x80 * each
	)
	n := 0
	for ; n+wordBytes <= len(b); n += wordBytes {
		w := binary.LittleEndian.Uint64(b[n:])
		// The subtractions borrow, and so set the high bit, where a byte is too
		// small: zero, after the XOR with what is sought, or less than a space.
		// Borrows go on to bytes behind the first one only. Bytes that had the
		// high bit before are not ASCII.
		found := ((w ^ each*'"') - each) | ((w ^ each*'\\') - each) | (w - each*' ')
		if found &= high &^ w; found != 0 {
			return n + bits.TrailingZeros64(found)/wordBytes
		}
	}
	for n < len(b) && b[n] != '"' && b[n] != '\\' && b[n] >= ' ' {
		n++
	}
	return n
}
