package fbc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// validSamples are texts at the edges of what JSON is.
func validSamples() []string {
	samples := []string{
		"", " ", "{}", " { } ", "[]", "[ ]", "[1,]", "[,1]", "[1 2]", "{,}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`,
		`{"a" : [ 1 , {"b":null} ] , "c":true}`, "{}{}", "{}]", "[}", "{]", "[[]", "nul", "nulll", "true", "falsey",
		"0", "-0", "-", "01", "1.", ".5", "1.5", "1e", "1e+", "1e-7", "1E5", "+1", "1e5.5", "0x1", "Infinity",
		`"`, `"a`, `"\"`, `"\"\\\/\b\f\n\r\t"`, `"\x"`, `"\u12aF"`, `"\u12a"`, `"\u12ag"`, `"\u`, `"\ud800"`,
		"\"\x1f\"", "\"\x00\"", "\"\x7f\"", "\"\x80\xff\"", "\"é–\u2028\"", "\"\t\"", "\"\n\"", "\ufeff{}",
	}
	// Each kind of byte at each place of a word.
	for _, c := range []byte{'"', '\\', '\n', 0x1f, ' ', '!', '#', '[', ']', 0x7f, 0x80, 0xa2, 0xdc, 0xff} {
		for place := range 18 {
			text := []byte(strings.Repeat("x", 18))
			text[place] = c
			samples = append(samples, `"`+string(text)+`"`, `["`+string(text)+`",1]`)
		}
	}
	return samples
}

func TestValidAgreesWithTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for _, sample := range validSamples() {
		if got, want := valid([]byte(sample)), json.Valid([]byte(sample)); got != want {
			t.Errorf("%q: got %v, want %v", sample, got, want)
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, sample := range validSamples() {
		f.Add([]byte(sample))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) > defaultNesting {
			t.Skip("nested deeper than the decoder allows")
		}
		if got, want := valid(b), json.Valid(b); got != want {
			t.Errorf("%q: got %v, want %v", b, got, want)
		}
	})
}
