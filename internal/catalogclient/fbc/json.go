package fbc

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// Kind is the type of a JSON value.
type Kind string

// The kinds of JSON values, as they are named in messages.
const (
	Null    Kind = "null"
	Boolean Kind = "a boolean"
	Number  Kind = "a number"
	String  Kind = "a string"
	Array   Kind = "an array"
	Map     Kind = "an object"
)

// KindOf returns the kind of value, which is valid JSON without leading space.
func KindOf(value []byte) Kind {
	if len(value) == 0 {
		return Null
	}
	switch value[0] {
	case '"':
		return String
	case '{':
		return Map
	case '[':
		return Array
	case 't', 'f':
		return Boolean
	case 'n':
		return Null
	}
	return Number
}

// Fields yields the keys and raw values of a JSON object in the order they are
// written; a repeated key comes up each time. The object must be valid JSON,
// as Decoder returns it. The values share its memory.
func Fields(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for rest := members(object); len(rest) > 0; rest = next(rest) {
			n := valueLength(rest)
			key := text(rest[:n])
			// The colon is the only thing between key and value.
			rest = space(space(rest[n:])[1:])
			n = valueLength(rest)
			if !yield(key, rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// Elements yields the raw elements of a JSON array, which must be valid JSON.
// The elements share its memory.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for rest := members(array); len(rest) > 0; rest = next(rest) {
			n := valueLength(rest)
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// members returns the text between the brackets of an object or array.
func members(value []byte) []byte {
	value = bytes.TrimSpace(value)
	return space(value[1 : len(value)-1])
}

// next skips the comma in front of the next member.
func next(rest []byte) []byte {
	rest = space(rest)
	if len(rest) == 0 {
		return nil
	}
	return space(rest[1:])
}

// space returns b without the space at its start, of which there mostly is none.
func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\r' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// text returns the text of a JSON string.
func text(quoted []byte) string {
	if inner := quoted[1 : len(quoted)-1]; plain(inner) == len(inner) && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	// The input was validated: only a string literal gets here.
	if err := json.Unmarshal(quoted, &s); err != nil {
		return string(quoted)
	}
	return s
}

// valueLength returns the length of the JSON value at the start of b.
func valueLength(b []byte) int {
	switch b[0] {
	case '{', '[', '"':
		var s scanner
		n, _ := s.scan(b)
		return n
	}
	if n := bytes.IndexAny(b, ",]} \t\r\n"); n >= 0 {
		return n
	}
	return len(b)
}

// scanner finds the end of a JSON object, array or string by its brackets and
// quotes alone. It does not validate: of text that is not JSON it finds some
// end or none.
type scanner struct {
	depth, deepest    int
	quoted, backslash bool
	// values counts what begins a value, but for the first one.
	values int
}

// scan consumes b up to and including the end of the value. It returns the
// number of bytes consumed and whether the value has ended; when it has not,
// the next call continues with what follows b.
func (s *scanner) scan(b []byte) (int, bool) {
	for i := 0; i < len(b); i++ {
		if s.quoted {
			n, ended := s.scanString(b[i:])
			i += n
			if !ended {
				return len(b), false
			}
			// i is at the closing quote.
		}
		switch b[i] {
		case '"':
			s.quoted = !s.quoted
		case '{', '[':
			s.depth++
			s.deepest = max(s.deepest, s.depth)
			s.values++
			continue
		case ',':
			s.values++
			continue
		case '}', ']':
			s.depth--
		default:
			continue
		}
		if s.depth <= 0 && !s.quoted {
			return i + 1, true
		}
	}
	return len(b), false
}

// scanString finds the closing quote in b, which starts within a string.
func (s *scanner) scanString(b []byte) (int, bool) {
	i := 0
	if s.backslash && len(b) > 0 {
		s.backslash = false
		i = 1
	}
	for i < len(b) {
		i += plain(b[i:])
		switch {
		case i == len(b):
			return i, false
		case b[i] == '"':
			return i, true
		case b[i] != '\\':
			i++
		case i+1 == len(b):
			s.backslash = true
			return len(b), false
		default:
			// What follows a backslash does not end the string.
			i += 2
		}
	}
	return len(b), false
}
