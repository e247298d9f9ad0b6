package fbc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// object is what tests compare of an fbc.Object.
type object struct{ Schema, Package, Name, JSON string }

// decode returns all objects of r and the error that ended it, nil at its end.
func decode(r io.Reader, limits fbc.Limits) ([]object, error) {
	dec := fbc.NewDecoder(r, limits)
	var objects []object
	for {
		o, err := dec.Next()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return objects, err
		}
		objects = append(objects, object{o.Schema, o.Package, o.Name, string(o.JSON)})
	}
}

func TestDecoderReadsStreams(t *testing.T) {
	t.Parallel()
	const a, b = `{"schema":"olm.package","name":"a"}`, `{"schema":"olm.bundle","package":"a","name":"b"}`
	wantA := object{Schema: "olm.package", Name: "a", JSON: a}
	wantB := object{Schema: "olm.bundle", Package: "a", Name: "b", JSON: b}
	yamlA := object{Schema: "olm.package", Name: "a", JSON: `{"name":"a","schema":"olm.package"}`}

	tests := map[string]struct {
		stream string
		want   []object
	}{
		"nothing":                {stream: "", want: nil},
		"space only":             {stream: " \n\t\r\n", want: nil},
		"a comment only":         {stream: "# nothing here", want: nil},
		"separators only":        {stream: "---\n---\n...\n---", want: nil},
		"null":                   {stream: "null\n---\n" + a, want: []object{wantA}},
		"JSON lines":             {stream: a + "\n" + b + "\n", want: []object{wantA, wantB}},
		"concatenated JSON":      {stream: a + b, want: []object{wantA, wantB}},
		"JSON between lines":     {stream: a + "\n---\n" + b, want: []object{wantA, wantB}},
		"JSON on separator line": {stream: "--- " + a, want: []object{wantA}},
		"YAML":                   {stream: "schema: olm.package\nname: a\n", want: []object{yamlA}},
		"YAML without line end":  {stream: "schema: olm.package\nname: a", want: []object{yamlA}},
		"YAML with line ends of another system": {
			stream: "---\r\nschema: olm.package\r\nname: a\r\n---\r\n" + b, want: []object{yamlA, wantB},
		},
		"indented YAML":           {stream: "\n  schema: olm.package\n  name: a\n", want: []object{yamlA}},
		"YAML after a comment":    {stream: "# hello\nschema: olm.package\nname: a\n", want: []object{yamlA}},
		"YAML then JSON":          {stream: "schema: olm.package\nname: a\n---\n" + b, want: []object{yamlA, wantB}},
		"JSON then YAML":          {stream: b + "\nschema: olm.package\nname: a\n", want: []object{wantB, yamlA}},
		"dashes inside a scalar":  {stream: "schema: olm.package\nname: a\ndescription: |\n  ---\n", want: []object{{Schema: "olm.package", Name: "a", JSON: `{"description":"---\n","name":"a","schema":"olm.package"}`}}},
		"brackets within strings": {stream: `{"name":"}]\"{["}`, want: []object{{Name: `}]"{[`, JSON: `{"name":"}]\"{["}`}}},
		"keys in another case":    {stream: `{"SCHEMA":"s","ſchema2":1,"Name":"n"}`, want: []object{{Schema: "s", Name: "n", JSON: `{"SCHEMA":"s","ſchema2":1,"Name":"n"}`}}},
		"a repeated key":          {stream: `{"name":"a","name":"b"}`, want: []object{{Name: "b", JSON: `{"name":"a","name":"b"}`}}},
		"an escaped key":          {stream: `{"n\u0061me":"x"}`, want: []object{{Name: "x", JSON: `{"n\u0061me":"x"}`}}},
		"no names at all":         {stream: `{}`, want: []object{{JSON: `{}`}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, r := range map[string]io.Reader{
				"whole":        strings.NewReader(tt.stream),
				"byte by byte": iotest.OneByteReader(strings.NewReader(tt.stream)),
			} {
				got, err := decode(r, fbc.Limits{})
				if err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s: -want +got\n%s", kind, diff)
				}
			}
		})
	}
}

// TestTextIsNoValue: what separates values counts outside of texts only, and in YAML
// where it is no part of a word.
func TestTextIsNoValue(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"JSON":         `{"a":"` + strings.Repeat(`,[{\"`, 1000) + `","b":[1,2,3]}`,
		"YAML":         "a: " + strings.Repeat("x-y:z?", 1000) + "\nb: [1, 2]\n",
		"two in JSON":  strings.Repeat(`{"a":[1,2,3]}`, 2),
		"two of YAML":  strings.Repeat("---\na: [1, 2, 3]\n", 2),
		"long comment": "# " + strings.Repeat("a, ", 1000) + "\na: 1\n",
	} {
		if got, err := decode(strings.NewReader(stream), fbc.Limits{Values: 5}); err != nil || len(got) == 0 {
			t.Errorf("%s: got %d objects and error %v", name, len(got), err)
		}
	}
}

func TestDecoderRefusesStreams(t *testing.T) {
	t.Parallel()
	small := fbc.Limits{StreamBytes: 100, ObjectBytes: 40, Objects: 2, Nesting: 3, NameBytes: 4}
	tests := map[string]struct {
		stream string
		limits fbc.Limits
		is     error
		limit  string
	}{
		"cut inside an object":    {stream: `{"schema":"olm.package","name":"p"}{`, is: io.ErrUnexpectedEOF},
		"cut inside a string":     {stream: `{"schema":"olm`, is: io.ErrUnexpectedEOF},
		"an array":                {stream: `[{"a":1}]`, is: fbc.ErrNotAnObject},
		"a scalar":                {stream: `hello`, is: fbc.ErrNotAnObject},
		"a YAML list":             {stream: "- a\n- b\n", is: fbc.ErrNotAnObject},
		"garbage after an object": {stream: `{} ]`},
		"mismatched brackets":     {stream: `{"a":[1}]`},
		"missing comma":           {stream: `{"a":1 "b":2}`},
		"a web page":              {stream: "<html>\n<body>: <p>\n</html>\t:"},
		"stream bytes":            {stream: strings.Repeat(`{"a":1}`+strings.Repeat(" ", 50), 2), limits: small, limit: "stream bytes"},
		"object bytes":            {stream: `{"a":"` + strings.Repeat("x", 40) + `"}`, limits: small, limit: "object bytes"},
		"bytes of YAML":           {stream: `a: ` + strings.Repeat("x", 40), limits: small, limit: "object bytes"},
		"a YAML document":         {stream: `a: ` + strings.Repeat("x", 30), limits: fbc.Limits{YAMLBytes: 30}, limit: "YAML document bytes"},
		"indentation of YAML":     {stream: strings.Repeat(" ", 50) + "a: b", limits: fbc.Limits{YAMLBytes: 30}, limit: "YAML document bytes"},
		"indentation":             {stream: strings.Repeat(" ", 50) + "a: b", limits: small, limit: "object bytes"},
		"objects":                 {stream: `{}{}{}`, limits: small, limit: "objects"},
		"nesting":                 {stream: `{"a":[[[1]]]}`, limits: small, limit: "levels of nesting"},
		"nesting of YAML":         {stream: "a:\n- - - 1\n", limits: small, limit: "levels of nesting"},
		"values":                  {stream: `{"a":[` + strings.Repeat("1,", 250_000) + `1]}`, limit: "values"},
		"lists":                   {stream: `{"a":[` + strings.Repeat("[],", 125_000) + `[]]}`, limit: "values"},
		"objects in one":          {stream: `{"a":[` + strings.Repeat(`{"b":1},`, 125_000) + `1]}`, limit: "values"},
		"values of YAML":          {stream: "a:\n" + strings.Repeat("- 1\n", 250_000), limit: "values"},
		"lists of YAML":           {stream: "a:\n" + strings.Repeat("- -\n", 125_000), limit: "values"},
		"values in a line":        {stream: "a: [" + strings.Repeat("1,", 250_000) + "1]", limit: "values"},
		"members of YAML":         {stream: strings.Repeat("- a: 1\n", 125_001), limit: "values"},
		"values by reference":     {stream: "a: &a [" + strings.Repeat("1,", 100_000) + "1]\nb: *a\nc: *a\n", limit: "values"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := decode(strings.NewReader(tt.stream), tt.limits)
			if _, ok := errors.AsType[*fbc.StreamError](err); !ok {
				t.Fatalf("got error %v, want a *fbc.StreamError", err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got error %v, want %v", err, tt.is)
			}
			var limitErr *fbc.LimitError
			if errors.As(err, &limitErr) != (tt.limit != "") || (limitErr != nil && limitErr.What != tt.limit) {
				t.Errorf("got error %v, want limit of %q", err, tt.limit)
			}
		})
	}
}

func TestDecoderStaysAtItsFault(t *testing.T) {
	t.Parallel()
	dec := fbc.NewDecoder(strings.NewReader("{}\n[]\n---\n{}"), fbc.Limits{})
	if _, err := dec.Next(); err != nil {
		t.Fatal(err)
	}
	_, first := dec.Next()
	_, second := dec.Next()
	if first == nil || !errors.Is(second, first) {
		t.Errorf("got errors %v and %v, want the same one", first, second)
	}
}

func TestDecoderReportsReadErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := decode(io.MultiReader(strings.NewReader("{}\n"), iotest.ErrReader(broken)), fbc.Limits{})
	if !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
}

// One bad object says nothing about its neighbours.
func TestDecoderGoesOnAfterObjectErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		object string
		owner  string
		want   string
	}{
		"a name that is a number": {
			object: `{"schema":"olm.bundle","package":"p","name":12345}`, owner: "p",
			want: `object 1, schema "olm.bundle", package "p": key "name": expected a string, found a number`,
		},
		"a name that is null": {
			object: `{"schema":"olm.bundle","package":"p","name":null}`, owner: "p",
			want: `object 1, schema "olm.bundle", package "p": key "name": expected a string, found null`,
		},
		"a package without a name": {
			object: `{"schema":"olm.package","name":12345}`,
			want:   `object 1, schema "olm.package": key "name": expected a string, found a number`,
		},
		"keys that differ in case": {
			object: `{"schema":"s","Schema":"t","package":"p"}`, owner: "p",
			want: `object 1, schema "t", package "p": duplicate keys for key "schema": ["Schema" "schema"]`,
		},
		"a name too long": {
			object: `{"package":"p","name":"` + strings.Repeat("x", 65) + `"}`, owner: "p",
			want: `object 1, package "p": key "name": name bytes exceed the limit of 64`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dec := fbc.NewDecoder(strings.NewReader(tt.object+`{"name":"next"}`), fbc.Limits{NameBytes: 64})
			_, err := dec.Next()
			var objectErr *fbc.ObjectError
			if !errors.As(err, &objectErr) {
				t.Fatalf("got error %v, want an *fbc.ObjectError", err)
			}
			if got := objectErr.Error(); got != tt.want {
				t.Errorf("got message %q, want %q", got, tt.want)
			}
			if got := objectErr.Object.Owner(); got != tt.owner {
				t.Errorf("got owner %q, want %q", got, tt.owner)
			}
			if next, err := dec.Next(); err != nil || next.Name != "next" {
				t.Errorf("got %q, %v for the next object", next.Name, err)
			}
		})
	}
}

func TestFieldsAndElements(t *testing.T) {
	t.Parallel()
	type field struct{ Key, Value string }
	want := []field{
		{"a", `"x,}"`}, {"b", `[ 1 , {"c":2} ]`}, {"d", `{}`}, {"e", `-1.5e3`}, {"f", `null`}, {"é", `true`},
	}
	var got []field
	for key, value := range fbc.Fields([]byte(` { "a" : "x,}", "b":[ 1 , {"c":2} ] ,"d":{},"e":-1.5e3 ,"f":null,"\u00e9":true } `)) {
		got = append(got, field{key, string(value)})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields: -want +got\n%s", diff)
	}
	var elements []string
	for value := range fbc.Elements([]byte(`[ 1 , {"c":2},[] , "]"]`)) {
		elements = append(elements, string(value))
	}
	if diff := cmp.Diff([]string{`1`, `{"c":2}`, `[]`, `"]"`}, elements); diff != "" {
		t.Errorf("elements: -want +got\n%s", diff)
	}
	for range fbc.Elements([]byte(`[ ]`)) {
		t.Error("an empty list has an element")
	}
}

// FuzzDecoder checks that whatever the decoder accepts is valid JSON that it
// reads again in the same way, however the stream is cut into reads.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte(`{"schema":"olm.package","name":"a"}{"package":"a"}`))
	f.Add([]byte("a: b\n---\n# c\n{\"name\":\"x\"}\n...\nb: [1, {c: d}]\n"))
	f.Add([]byte(`{"a":"\"}","b":[[[]]]}` + "\n---\nnull"))
	limits := fbc.Limits{StreamBytes: 1 << 16, ObjectBytes: 1 << 12, Objects: 50, Nesting: 20, NameBytes: 100}
	f.Fuzz(func(t *testing.T, stream []byte) {
		objects, err := decode(bytes.NewReader(stream), limits)
		slowly, slowErr := decode(iotest.OneByteReader(bytes.NewReader(stream)), limits)
		if diff := cmp.Diff(objects, slowly); diff != "" || (err == nil) != (slowErr == nil) {
			t.Fatalf("errors %v and %v, differences:\n%s", err, slowErr, diff)
		}
		var again bytes.Buffer
		for _, o := range objects {
			if !json.Valid([]byte(o.JSON)) {
				t.Fatalf("not JSON: %q", o.JSON)
			}
			again.WriteString(o.JSON + "\n")
		}
		second, err := decode(&again, fbc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(objects, second); diff != "" {
			t.Fatalf("second reading: -want +got\n%s", diff)
		}
	})
}

// BenchmarkDecoder reads objects like those of public catalogs, which consist
// of encoded manifests for the greater part.
func BenchmarkDecoder(b *testing.B) {
	line := `{"image":"quay.io/a/b@sha256:0","name":"b","package":"p","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},{"type":"olm.bundle.object","value":{"data":"` +
		strings.Repeat("QUJDREVGR0g=", 1000) + `"}}],"schema":"olm.bundle"}` + "\n"
	stream := strings.Repeat(line, 1000)
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		if _, err := decode(strings.NewReader(stream), fbc.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAliasesAreBounded has a small document that stands for much: it is refused before
// anybody takes the memory for it.
//
//nolint:paralleltest // it looks at the memory of the process
func TestAliasesAreBounded(t *testing.T) {
	const bytes, aliases = 256 << 10, 2400
	content := "schema: olm.package\nname: p\nlong: &long " + strings.Repeat("x", bytes) + "\nmuch: [" + strings.Repeat("*long,", aliases) + "]\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := fbc.NewDecoder(strings.NewReader(content), fbc.Limits{}).Next()
	runtime.ReadMemStats(&after)
	if limit, ok := errors.AsType[*fbc.LimitError](err); !ok || limit.What != "object bytes" {
		t.Errorf("got %v", err)
	}
	const most = 32 << 20
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Errorf("it took %d bytes", took)
	}
	few := "schema: olm.package\nname: p\nlong: &long " + strings.Repeat("x", bytes) + "\nmuch: [*long, *long]\n"
	if _, err := fbc.NewDecoder(strings.NewReader(few), fbc.Limits{}).Next(); err != nil {
		t.Error(err)
	}
}
